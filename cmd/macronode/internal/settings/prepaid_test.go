package settings

import "testing"

// TestArrearsOnly: a tenant that only pays arrears is postpaid, and its terms still collect.
func TestArrearsOnly(t *testing.T) {
	for _, only := range []bool{false, true} {
		prepaid, a := prepaidTerms(baseConfig(t, keyChange{"accounting.prepaid[].arrears_only", "accounting.prepaid[0].arrears_only", only}))
		if prepaid[2] == nil != only || a.Collected[2] == nil || a.Collected[2].Payer() != "usage:prepaid" || a.Prices == nil {
			t.Errorf("arrears only %v: prepaid %v, %+v", only, prepaid, a)
		}
	}
}
