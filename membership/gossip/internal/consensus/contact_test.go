package consensus

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// voting is a configuration: the others that vote, and whether this server does.
func voting(own bool, others ...string) func() ([]string, bool) {
	return func() ([]string, bool) { return others, own }
}

// TestWhoProvesThatThisServerLeads holds which answers prove it: those of voters, in this term, to what was sent late enough.
func TestWhoProvesThatThisServerLeads(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for what, k := range map[string]struct {
		voters func() ([]string, bool)
		answer func(*contacts)
		leads  bool
	}{
		"alone":                            {voting(true), func(*contacts) {}, true},
		"nobody has answered":              {voting(true, "b", "c"), func(*contacts) {}, false},
		"one of two others":                {voting(true, "b", "c"), func(c *contacts) { c.answered("b", 3, at(6)) }, true},
		"to what was sent before":          {voting(true, "b", "c"), func(c *contacts) { c.answered("b", 3, at(4)) }, false},
		"at that very time":                {voting(true, "b", "c"), func(c *contacts) { c.answered("b", 3, at(5)) }, false},
		"and later to what was sent after": {voting(true, "b", "c"), func(c *contacts) { c.answered("b", 3, at(4)); c.answered("b", 3, at(6)) }, true},
		"overtaken by an earlier one":      {voting(true, "b", "c"), func(c *contacts) { c.answered("b", 3, at(6)); c.answered("b", 3, at(4)) }, true},
		"in the term before":               {voting(true, "b", "c"), func(c *contacts) { c.answered("b", 2, at(9)) }, false},
		"in a later term":                  {voting(true, "b", "c"), func(c *contacts) { c.answered("b", 3, at(9)); c.answered("b", 4, at(9)) }, false},
		"those who only follow":            {voting(true, "b", "c"), func(c *contacts) { c.answered("d", 3, at(9)); c.answered("e", 3, at(9)) }, false},
		"one of four others":               {voting(true, "b", "c", "d", "e"), func(c *contacts) { c.answered("b", 3, at(9)) }, false},
		"two of four others":               {voting(true, "b", "c", "d", "e"), func(c *contacts) { c.answered("b", 3, at(9)); c.answered("e", 3, at(9)) }, true},
		"half of them, without a vote":     {voting(false, "b", "c"), func(c *contacts) { c.answered("b", 3, at(9)) }, false},
	} {
		t.Run(what, func(t *testing.T) {
			c := newContacts(k.voters)
			k.answer(c)
			require.Equal(t, k.leads, c.leads(3, at(5)))
		})
	}
}

// TestConfirmationIsWaitedFor waits for an answer that proves something, for the end of the term, and for that of who asks.
func TestConfirmationIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContacts(voting(true, "b", "c"))
		since := time.Now()
		confirmed := make(chan error, 1)
		go func() { confirmed <- c.confirm(t.Context(), nil, 3, since) }()
		synctest.Wait()
		c.answered("b", 3, since)
		synctest.Wait()
		require.Empty(t, confirmed)
		c.answered("c", 3, since.Add(1))
		require.NoError(t, <-confirmed)
		require.NoError(t, c.confirm(t.Context(), nil, 3, since), "it is known already")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.confirm(ctx, nil, 3, since.Add(1)), context.DeadlineExceeded)
		over := make(chan struct{})
		close(over)
		require.Equal(t, errNotLeader(), c.confirm(t.Context(), over, 3, since.Add(1)))
		require.Empty(t, c.waiting)
	})
}
