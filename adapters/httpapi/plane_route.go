package httpapi

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/types"
)

// PlaneRoutes are the operations of a plane that this package does not know.
type PlaneRoutes struct {
	Plane    types.Plane
	Routes   []PlaneRoute
	Document []byte // a JSON object with the members of the OpenAPI document to add: paths, and schemas of components
}

// A PlaneRoute is one operation.
type PlaneRoute struct {
	Name, Method string
	Path         string // below /v1/; a parameter is a part such as :name
	ReadsIndex   bool
	// Serve serves an admitted request: it calls Send or Execute, or returns an error. An error of another package is
	// reported as internal, unless it is of Invalid.
	Serve func(*PlaneCall) error
}

// PlaneState reads the durable state of planes, and the views of them in the index.
type PlaneState interface {
	// ReadPlane passes a plane and the time of the state to read, and returns the frame of the state.
	ReadPlane(id types.Plane, read func(p plane.Plane, at types.Time)) (upto types.LSN)
	// AwaitFrame waits until the index has a frame. It returns false if ctx ends first, or if too many requests wait.
	AwaitFrame(ctx context.Context, lsn types.LSN) bool
	// PlaneRows passes the rows of a tenant in the view of a plane that begin with prefix and are not before from, at
	// most limit. More reports that the list goes on at next.
	PlaneRows(p types.Plane, t types.Tenant, prefix, from []byte, limit int, each func(key, value []byte) bool) (next []byte, more bool, err error)
}

// A PlaneCall is one request to a PlaneRoute. It is valid until Serve returns.
type PlaneCall struct {
	k     *call
	plane types.Plane
}

// Invalid returns an error for a request that is invalid: 400 with the text of err, which has neither quotes nor text
// of the request.
func Invalid(err error) error { return invalid(err) }

// addPlane adds the operations of a plane. They have no numbers, so no limit of a single route applies to them.
func (a *API) addPlane(p PlaneRoutes) {
	for _, r := range p.Routes {
		types.Assert(OwnsPath(r.Path) && !strings.Contains(a.allowedMethods[r.Path], r.Method), "httpapi: the path "+r.Path+" is not below /v1/, or taken")
		e := &endpoint{name: r.Name, usage: endpointUsage(p.Plane.String(), r.Name), facet: types.FacetWallet, meanBytes: 1 << 10}
		if r.ReadsIndex {
			e.facet, e.meanBytes = types.FacetQuery, 16<<10
		}
		a.handle(e, r.Method, r.Path, func(k *call) error { return r.Serve(&PlaneCall{k, p.Plane}) })
	}
	if len(p.Routes) > 0 {
		a.document = mergeDocument(a.document, p.Document)
	}
}

// mergeDocument adds the members of an object to another one. Where both have an object, its members are merged. Any
// other name that is there already is a bug, so an operation is not described twice.
func mergeDocument(document, added []byte) []byte {
	b := append(merge(document, added), '\n')
	types.Assert((*jsontext.Value)(&b).Indent(jsontext.WithIndent("  ")) == nil, "httpapi: the document cannot be written")
	return b
}

func merge(to, from jsontext.Value) jsontext.Value {
	var whole, part map[string]jsontext.Value
	err := errors.Join(json.Unmarshal(to, &whole), json.Unmarshal(from, &part))
	for name, value := range part { // the order does not matter: Marshal sorts
		if old, known := whole[name]; known {
			types.Assert(old.Kind() == '{', "httpapi: the document of a plane has a name again: "+name)
			value = merge(old, value)
		}
		whole[name] = value
	}
	b, failed := json.Marshal(whole, json.Deterministic(true))
	types.Assert(errors.Join(err, failed) == nil, "httpapi: the document of a plane is not an object")
	return b
}

// Tenant returns the tenant of the caller. It is set after Authorize or Command.
func (c *PlaneCall) Tenant() types.Tenant { return c.k.key.Tenant }

// Authorize returns an error unless the caller has an API key with a scope and without limits on accounts and assets.
func (c *PlaneCall) Authorize(scope event.Scopes) error {
	if err := c.k.requireScope(scope); err != nil {
		return err
	}
	return c.k.requireUnboundedKey()
}

// PathParam returns the first parameter of the path.
func (c *PlaneCall) PathParam() (string, error) { return c.k.pathName() }

// Command authorizes the caller, reads the idempotency key, and decodes the JSON of the body into body, a pointer to a
// struct. Members that body does not have are errors. It returns the header of a command.
func (c *PlaneCall) Command(scope event.Scopes, body any) (h command.Header, err error) {
	if err := c.Authorize(scope); err != nil {
		return h, err
	}
	key, err := c.k.idempotencyKey()
	if err != nil {
		return h, err
	}
	text := takeBuffer()
	defer giveBuffer(text)
	switch isEmpty, err := c.k.readJSON(text); {
	case err != nil:
		return h, err
	case isEmpty:
		return h, problem(event.UnsupportedMedia)
	}
	if err := decode(*text, body, strict); err != nil {
		return h, err
	}
	h = c.k.commandHeader()
	h.Key.Text = []byte(key)
	return h, nil
}

// Execute has the node decide a command, and answers with the outcome. detail explains a problem for which nothing is
// recorded, in ASCII without quotes; empty: the text of the problem is used.
func (c *PlaneCall) Execute(in command.Command, detail func(event.Problem) string) error {
	err := c.k.decide(c.k.r.Context(), func(ctx context.Context) (event.Reply, bool) { return c.k.execute(ctx, in) })
	if r, ok := errors.AsType[*refusal](err); ok && r.detail == "" && detail != nil {
		r.detail = detail(r.problem)
	}
	return err
}

// A PlanePage is the page that a query asks for: the parameters prefix, limit and cursor.
type PlanePage struct {
	Prefix, From []byte
	Limit        int
}

// Page authorizes the caller for the scope read, and reads the query of a list.
func (c *PlaneCall) Page() (p PlanePage, err error) {
	if err := c.Authorize(event.ScopeRead); err != nil {
		return p, err
	}
	prefix := ""
	err = c.k.query(limitParam(&p.Limit), c.k.cursorParam(&p.From, c.listing(), func([]byte) bool { return true }),
		prefixParam(&prefix, func(s string) error { return types.CheckKey(s) }))
	p.Prefix = []byte(prefix)
	return p, err
}

// listing is the number of the list of a plane in cursors.
func (c *PlaneCall) listing() listing { return listing(128 + c.plane) }

// Rows passes the rows of a page to each: those of all frames that the read model has. It returns the cursor of the
// next page; empty: there is none.
func (c *PlaneCall) Rows(p PlanePage, each func(key, value []byte) bool) (cursor string, err error) {
	ctx, cancel := c.k.waiting(c.k.Deadline)
	defer cancel()
	upto := c.k.Planes.ReadPlane(c.plane, func(plane.Plane, types.Time) {})
	if !c.k.Planes.AwaitFrame(ctx, upto) {
		return "", cmp.Or(c.k.lossError(), problem(event.Unavailable))
	}
	err = c.k.readPage(p.Limit, func() (err error) {
		cursor, err = c.rows(ctx, p, each)
		return err
	})
	return cursor, err
}

// rows is Rows of what the index has.
func (c *PlaneCall) rows(ctx context.Context, p PlanePage, each func(key, value []byte) bool) (cursor string, err error) {
	for from, left := p.From, p.Limit; ; {
		next, more, err := c.k.Planes.PlaneRows(c.plane, c.Tenant(), p.Prefix, from, left, func(key, value []byte) bool {
			left--
			return each(key, value)
		})
		switch {
		case err != nil:
			return "", err
		case !more:
			return "", nil
		case ctx.Err() != nil:
			return "", problem(event.Timeout)
		case left == 0:
			return c.k.cursor(c.listing(), next), nil
		}
		from = next
	}
}

// Read passes the durable state of the plane to read, which neither changes nor keeps it.
func (c *PlaneCall) Read(read func(p plane.Plane, at types.Time)) {
	c.k.Planes.ReadPlane(c.plane, read)
}

// Send answers with a JSON text.
func (c *PlaneCall) Send(text []byte) error {
	c.k.identify()
	c.k.answer(200, jsonType, text)
	return nil
}
