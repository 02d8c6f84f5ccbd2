package broker

import (
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
)

// logConfig is the part of a topic's configuration that its logs act on, but for the check of its records' keys.
func logConfig(c kafka.TopicConfig) log.Config {
	before, after := c.TimestampBounds()
	return log.Config{
		SegmentBytes:           int64(c.SegmentBytes),
		SegmentMs:              c.SegmentMs,
		SegmentJitterMs:        c.SegmentJitterMs,
		IndexIntervalBytes:     c.IndexIntervalBytes,
		IndexSizeMaxBytes:      c.SegmentIndexBytes,
		RetentionMs:            c.RetentionMs,
		RetentionBytes:         c.RetentionBytes,
		Compact:                c.CleanupPolicy.Compact,
		Delete:                 c.CleanupPolicy.Delete,
		DeleteRetentionMs:      c.DeleteRetentionMs,
		MinCleanableDirtyRatio: c.MinCleanableDirtyRatio,
		MinCompactionLagMs:     c.MinCompactionLagMs,
		MaxCompactionLagMs:     c.MaxCompactionLagMs,
		FileDeleteDelayMs:      c.FileDeleteDelayMs,
		FlushMessages:          c.FlushMessages,
		FlushMs:                c.FlushMs,
		MaxMessageBytes:        int(c.MaxMessageBytes),
		Compression:            logCompression(c),
		LogAppendTime:          c.MessageTimestampType == kafka.LogAppendTime,
		TimestampBeforeMaxMs:   before,
		TimestampAfterMaxMs:    after,
		Preallocate:            c.Preallocate,
	}
}

// cleanerOptions are how the broker compacts logs.
func cleanerOptions(c *kafka.BrokerConfig) log.CleanerOptions {
	return log.CleanerOptions{
		Threads:        int(c.LogCleanerThreads),
		Memory:         c.LogCleanerDedupeBufferSize,
		Load:           c.LogCleanerIOBufferLoadFactor,
		Buffer:         int(c.LogCleanerIOBufferSize),
		BytesPerSecond: c.LogCleanerIOMaxBytesPerSecond,
		Backoff:        c.LogCleanerBackoff,
	}
}

// logCompression is what compression.type and the level keys say.
func logCompression(c kafka.TopicConfig) log.Compression {
	switch c.CompressionType {
	case "producer":
		return log.Compression{Producer: true}
	case "gzip":
		return log.Compression{Codec: record.Gzip, Level: int(c.CompressionGzipLevel)}
	case "snappy":
		return log.Compression{Codec: record.Snappy}
	case "lz4":
		return log.Compression{Codec: record.LZ4, Level: int(c.CompressionLz4Level)}
	case "zstd":
		return log.Compression{Codec: record.Zstd, Level: int(c.CompressionZstdLevel)}
	}
	return log.Compression{Codec: record.None}
}
