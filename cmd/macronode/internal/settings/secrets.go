package settings

import (
	"fmt"
	"io/fs"
	"os"

	"macronode/adapters/config"
)

// An ExposedSecret is a file with a secret that every user of the machine can access.
type ExposedSecret struct {
	Key  string // of the configuration
	File string
	Mode fs.FileMode
}

func (s ExposedSecret) String() string {
	return fmt.Sprintf("%s: %s has mode %04o: every user of this machine can access the secret; chmod o-rwx it, and replace the secret", s.Key, s.File, s.Mode)
}

// ExposedSecrets returns the files with secrets that a configuration names and that others than the
// owner and the group can access. The files in the data directory are rejected when they are read.
func ExposedSecrets(c *config.Config) (all []ExposedSecret) {
	files := []ExposedSecret{{Key: "listen.tls.key", File: c.Listen.TLS.Key}, {Key: "admin.token_file", File: NewAdmin(c).tokenFile}}
	for i, p := range c.Storage.Providers {
		files = append(files, ExposedSecret{Key: fmt.Sprintf("storage.providers[%d].credentials_file", i), File: p.Secret})
	}
	for _, of := range files {
		if of.File == "" {
			continue
		}
		is, err := os.Stat(of.File)
		if err != nil { // it is reported where the file is read
			continue
		}
		if of.Mode = is.Mode().Perm(); of.Mode&0o007 != 0 {
			all = append(all, of)
		}
	}
	return all
}
