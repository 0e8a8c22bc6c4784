package fleet

// SetRevoked replaces who is kept out. Their polls are woken, to be ended.
func (f *Fleet) SetRevoked(ids []string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.revoked = make(map[string]bool, len(ids))
	for _, id := range ids {
		f.revoked[id] = true
		if a := f.aps[id]; a != nil && a.poll != nil {
			a.poll.wakeUp()
		}
	}
}
