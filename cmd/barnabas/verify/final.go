package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

// concurrent is how many replicas are read at a time.
const concurrent = 8

// readAll reads everything from everywhere, when nobody writes any more. It gives what couldn't be read, in words.
func (r *Run) readAll(ctx context.Context) (unread []string, err error) {
	r.options.Say("waiting until all replicas are in sync")
	patient, cancel := context.WithTimeout(ctx, r.options.Patience)
	defer cancel()
	l, err := r.cluster.settled(patient, r.topic)
	if err != nil {
		return nil, err
	}
	if len(l.partitions) != len(r.book.pages) {
		return nil, fmt.Errorf("topic %s had %d partitions and has %d now", r.topic, len(r.book.pages), len(l.partitions))
	}
	r.readersCatchUp(ctx)
	r.options.Say("reading every replica")
	jobs, unread := r.replicaJobs(l)
	unread = r.readJobs(ctx, jobs, unread)
	if r.options.EveryLeader {
		moving, cancel := context.WithTimeout(ctx, 5*r.options.Patience)
		defer cancel()
		turn := 0
		err := r.cluster.everyLeader(moving, r.topic, func(l layout) error {
			turn++
			r.options.Say(fmt.Sprintf("reading the leaders, turn %d", turn))
			unread = r.readJobs(ctx, r.leaderJobs(l, false), unread)
			return ctx.Err()
		})
		if err != nil {
			unread = append(unread, fmt.Sprintf("not every replica was made the leader: %v", err))
		}
	}
	return unread, ctx.Err()
}

// readersCatchUp gives the live readers time to see all that was acknowledged. Those that don't are no fault by themselves.
func (r *Run) readersCatchUp(ctx context.Context) {
	patient, cancel := context.WithTimeout(ctx, min(10*time.Second, r.options.Patience))
	defer cancel()
	for i := range r.book.pages {
		end := r.book.acknowledgedTo(int32(i))
		for r.readers[0].position[i].Load() < end && wait(patient, 20*time.Millisecond) == nil {
		}
	}
}

// replicaJobs are the readings of all replicas that can be expected to have everything, and of the leaders as who reads only
// what is committed, where there were transactions.
func (r *Run) replicaJobs(l layout) (jobs []*replica, unread []string) {
	for i, p := range l.partitions {
		for _, broker := range p.replicas {
			switch {
			case !slices.Contains(l.alive, broker):
				unread = append(unread, fmt.Sprintf("partition %d on broker %d, which is not alive", i, broker))
			case !slices.Contains(p.inSync, broker):
				unread = append(unread, fmt.Sprintf("partition %d on broker %d, which is not in sync", i, broker))
			default:
				jobs = append(jobs, r.job(int32(i), broker, history.View{Name: fmt.Sprintf("replica on %d", broker)}))
			}
		}
	}
	if r.options.Transactions {
		jobs = append(jobs, r.leaderJobs(l, true)...)
	}
	return jobs, unread
}

// leaderJobs are the readings of all partitions from their leaders.
func (r *Run) leaderJobs(l layout, committed bool) []*replica {
	var jobs []*replica
	for i, p := range l.partitions {
		name := fmt.Sprintf("leader on %d", p.leader)
		if committed {
			name = "committed, " + name
		}
		jobs = append(jobs, r.job(int32(i), p.leader, history.View{Name: name, Committed: committed}))
	}
	return jobs
}

func (r *Run) job(partition, broker int32, v history.View) *replica {
	v.Final = true
	v.From = r.book.pages[partition].Start
	v.To = v.From
	return &replica{run: r, client: r.cluster.client, broker: broker, partition: partition, view: v}
}

// readJobs does readings, some at a time, and adds to unread what brought nothing.
func (r *Run) readJobs(ctx context.Context, jobs []*replica, unread []string) []string {
	patient, cancel := context.WithTimeout(ctx, r.options.Patience)
	defer cancel()
	// What was shown to anybody by now lies below the ends that are asked for now, and has to be shown; what comes later, such as the
	// markers of the last transactions, need not have reached every replica yet.
	begin := r.book.now()
	ends := r.allEnds(patient)
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, concurrent)
	for _, job := range jobs {
		job.until = max(r.book.acknowledgedTo(job.partition), ends[job.partition])
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			job.view.Begin = begin
			err := job.read(patient)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				unread = append(unread, fmt.Sprintf("partition %d, %s: %v", job.partition, job.view.Name, err))
			}
			job.view.Final = err == nil // otherwise what it lacks may be there
			if !errors.Is(err, errOld) {
				r.book.view(job.partition, job.view)
			}
		})
	}
	all.Wait()
	return unread
}

// allEnds asks where partitions end until all answer, or ctx ends.
func (r *Run) allEnds(ctx context.Context) map[int32]int64 {
	for {
		ends := r.cluster.ends(ctx, r.topic)
		if len(ends) >= len(r.book.pages) || wait(ctx, 100*time.Millisecond) != nil {
			return ends
		}
	}
}
