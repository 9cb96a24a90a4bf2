package settings

import (
	"errors"
	"fmt"

	"macronode/adapters/adminapi"
	"macronode/adapters/config"
)

// CertificateKey is the key in a list of changes if the files of listen.tls have another certificate under the
// same names.
const CertificateKey = "certificate"

// Compare returns the differences. It fails if some of them need a restart.
func Compare(is, next *config.Config) ([]adminapi.Changed, error) {
	all, wrong := []adminapi.Changed{}, []error(nil)
	for _, d := range config.Diff(is, next) {
		all = append(all, adminapi.Changed(d))
		if !d.Hot {
			wrong = append(wrong, fmt.Errorf("%s takes effect only at the next start: it is %s and would become %s", d.Key, d.Old, d.New))
		}
	}
	return all, errors.Join(wrong...)
}
