package fnv1a

// hash is 32-bit FNV-1a, as hash/fnv has it, without an allocation.
func hash(key []byte) uint32 {
	const (
		basis = 2166136261
		prime = 16777619
	)
	h := uint32(basis)
	for _, c := range key {
		h = (h ^ uint32(c)) * prime
	}
	return h
}
