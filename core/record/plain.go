package record

// This file walks over what nearly all records are: without headers, and with numbers of one or two bytes. Every record that is produced is
// looked at, so what a record costs here is most of what small records cost the broker beyond their bytes.

// window is how many bytes the numbers at the front of a plain record may take, and more: a length, attributes, two deltas and
// the length of the key, of three bytes at most. It is a power of two, so that an index into it needs no check.
const window = 16

// walkPlain walks from the front of payload as long as records are plain, and adds what it finds to w. It returns how many these were, and the bytes
// behind them. It judges none: ok is false when the rules might have something against one, and what it added is of no use then.
func (r *Rules) walkPlain(w *walked, h Header, payload []byte) (n int32, rest []byte, ok bool) {
	// In registers, all of it.
	count, base, p := h.Count, h.BaseTimestamp, 0
	maxTimestamp, maxIndex, minTimestamp := w.maxTimestamp, w.maxIndex, base
	sequential, plain, keyless := true, true, false
	for ; n < count && len(payload)-p >= window; n++ {
		b := (*[window]byte)(payload[p:])
		size, i := uint32(b[0]), 1
		if size >= 0x80 {
			if b[1] >= 0x80 {
				break
			}
			size, i = size&0x7f|uint32(b[1])<<7, 2
		}
		end := p + i + int(size>>1)
		if size&1 != 0 || end > len(payload) {
			break
		}
		attributes := b[i]
		delta := uint32(b[i+1])
		i += 2
		if delta >= 0x80 {
			if b[i] >= 0x80 {
				break
			}
			delta = delta&0x7f | uint32(b[i])<<7
			i++
		}
		offset := uint32(b[i])
		i++
		if offset >= 0x80 {
			offset = offset&0x7f | uint32(b[i])<<7
			if i++; offset >= 1<<14 { // of which a large batch has many: the last bit of the second byte says that there is a third
				if b[i] >= 0x80 {
					break
				}
				offset = offset&(1<<14-1) | uint32(b[i])<<14
				i++
			}
		}
		key := uint32(b[i&(window-1)])
		i++
		if key >= 0x80 {
			if b[i&(window-1)] >= 0x80 {
				break
			}
			key = key&0x7f | uint32(b[i&(window-1)])<<7
			i++
		}
		q := p + i
		if key&1 == 0 {
			q += int(key >> 1)
		}
		if q+2 > end { // numbers that were read lie behind the record's end, or the key does
			break
		}
		value := uint32(payload[q])
		q++
		if value >= 0x80 {
			if payload[q] >= 0x80 {
				break
			}
			value = value&0x7f | uint32(payload[q])<<7
			q++
		}
		if value&1 == 0 {
			q += int(value >> 1)
		}
		if q+1 != end || payload[q] != 0 {
			break
		}
		timestamp := base + (int64(delta>>1) ^ -int64(delta&1))
		if timestamp > maxTimestamp {
			maxTimestamp, maxIndex = timestamp, n
		}
		minTimestamp = min(minTimestamp, timestamp)
		sequential = sequential && offset == uint32(n)<<1
		plain = plain && attributes == 0 && (n > 0 || delta == 0)
		keyless = keyless || key&1 != 0
		p = end
	}
	w.maxTimestamp, w.maxIndex, w.sequential, w.plain = maxTimestamp, maxIndex, sequential, plain
	return n, payload[p:], !(r.Compacted && keyless) && r.allows(minTimestamp, maxTimestamp)
}

// allows says whether all timestamps from one to another are surely allowed.
func (r *Rules) allows(from, to int64) bool {
	return r.LogAppendTime || from >= 0 && r.Now >= 0 && r.Now-from <= r.BeforeMaxMs && to-r.Now <= r.AfterMaxMs
}
