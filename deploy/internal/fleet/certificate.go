package fleet

import "time"

// Certificates are, of the connected APs, the end of the certificate that ends first (0: there is none), and how many
// end within a time.
func (f *Fleet) Certificates(within time.Duration) (firstUS int64, ending int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	limit := f.us() + within.Microseconds()
	for id, a := range f.aps {
		if !a.Connected || a.CertificateUS == 0 || f.revoked[id] {
			continue
		}
		if firstUS == 0 || a.CertificateUS < firstUS {
			firstUS = a.CertificateUS
		}
		if a.CertificateUS < limit {
			ending++
		}
	}
	return firstUS, ending
}
