package log_test

import (
	"testing"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/log/logtest"
)

func TestModel(t *testing.T) { logtest.Run(t, log.NewPlainStorage()) }

func TestCompactionModel(t *testing.T) { logtest.RunCompaction(t, log.NewPlainStorage()) }
