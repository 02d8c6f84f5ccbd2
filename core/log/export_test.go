package log

import "github.com/barnabas-mq/barnabas/core/storage"

// NewPlainStorage is the simplest storage, for tests outside of this package.
func NewPlainStorage() storage.Storage { return &plainStorage{} }
