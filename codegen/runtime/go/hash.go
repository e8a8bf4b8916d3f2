// Hash is the hash of bytes, or of a text, for fields of type hash: XXH3, 64 bits; 0 of none.
func Hash[T ~string | ~[]byte](data T) uint64 {
	return ppt_hash(*(*unsafe.Pointer)(unsafe.Pointer(&data)), len(data))
}

// HashU64 is the hash of the 8 bytes of a number.
func HashU64(number uint64) uint64 {
	return ppt_hash_u64(number)
}

// Hash128 is the same as Hash for fields of type hash128.
func Hash128[T ~string | ~[]byte](data T) [16]byte {
	return ppt_hash128(*(*unsafe.Pointer)(unsafe.Pointer(&data)), len(data))
}
