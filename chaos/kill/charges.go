package kill

import (
	"path/filepath"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/charges"
	"macronode/core/pricing"
	"macronode/core/record"
)

// CertifyCharges reads the journal of a stopped node and certifies that each effect of a request has its usage, each unit of usage is in
// its lines, and each line has paid its price, once. settled are the prices in force.
func CertifyCharges(data string, c charges.Config, settled pricing.List) (*charges.Journal, error) {
	j := charges.New(c)
	each := func(frames []record.Sealed) error {
		for i := range frames {
			if err := j.Frame(&frames[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := (journalfile.Reading{Each: each}).Scan(fs.Dir(filepath.Join(data, "journal"))); err != nil {
		return nil, err
	}
	return j, j.Settled(settled)
}
