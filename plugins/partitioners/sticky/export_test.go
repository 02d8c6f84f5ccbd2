package sticky

// Topics is how many topics are known.
func (p *Partitioner) Topics() int { return len(p.topics) }
