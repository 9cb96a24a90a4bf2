package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"macronode/adapters/decisions"
	"macronode/cmd/macronode/internal/exit"
	"macronode/cmd/macronode/internal/explain"
)

// Run explains the decision on a request.
func (v *decisionCmd) Run(c *Console) error {
	if strings.ContainsAny(v.ID, "/?#%") {
		return errors.New("a decision ID is d_ and 32 hexadecimal digits: responses have it in X-Decision-Id, problems in decision_id")
	}
	_, is, err := c.node().findNode()
	if err != nil {
		return exit.Unable(err)
	}
	ctx, stop := interruptible()
	defer stop()
	got, err := c.node().callAdmin(ctx, is, http.MethodGet, "/v1/decisions/"+v.ID, attemptTimeout)
	if err != nil {
		return err
	}
	var d decisions.Decision
	if !got.ok() || json.Unmarshal(got.body, &d) != nil {
		return got.problem()
	}
	if c.tree.JSON {
		text, err := line(d)
		if err != nil {
			return err
		}
		return c.printLine("%s", explain.PrintableJSON(string(text)))
	}
	_, err = fmt.Fprint(c.out, explain.Decision(&d))
	return err
}
