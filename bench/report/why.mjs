// Why a target is missed: where the time is spent, as `node --cpu-prof` and runs of a shortened script showed it, and what
// the floor is. The figures themselves are in the tables.
export const why = {
  memory: `**\`decide\` against \`consume\`.** Of the time of a decision by one rule a quarter is the clock, an eighth the lookup of the key in a
Map and a twelfth the call that the user makes; \`consume\` pays the first two as well, and a promise. The rest is what one rule
does not need and several do: finding the rules, a charge for each, the verdict with what it takes to refund it. \`check\` adds
a promise and its \`await\`, which cost as much as a decision by one rule does.

**50 000 keys against a bare Map.** Both wait for memory, not for instructions, and seven tenths of Diana's time is the same
lookup in the same kind of Map: its bucket, its entry and the text of the key. Diana adds the numbers of the key, in a typed
array of their own, which make a key cost a quarter of what a peer's costs, and the answer: what is left, until when, whether the
call may wait. While that is computed the processor cannot fetch the next key yet, as it does for the Map, whose keys are requested
in the order in which they were added; so the ratio varies with the machine's caches, between 1.4 and 1.7 on a quiet machine.
`,
  filters: `The floor is "bare, two headers that change": writing headers that differ between answers costs a fast framework more than
the twentieth that the target allows, since Node checks every name and value by a regular expression and concatenated text
must be flattened for it; all peers that write headers pay that. Of what Diana itself adds to Fastify with one
rule, two thirds are the decision and a third the headers, whose text is cached for callers with the same numbers;
the filter between them is a tenth of a microsecond. With four rules the headers are four times as long, and cost nearly as much
as the four decisions. Express gives each request a hidden class of its own, so that every property access takes
the slow path. Under full load on this machine a microsecond of mere spinning in a hook shows as 1.7 or more.
`,
  gateway: `"bare node:http and undici" is no longer the floor of the gateway: calls without a body whose answer arrives in one piece, as
here, are written and read without undici, which is half of what the bare proxy spends. The gateway adds the decision by
four rules and the text of their headers; its own work (normalizing the target, headers in both directions, the order of calls on a
connection, the pace of callers, connections to the service, a record of the call); and a longer head, since services get headers about
the caller and callers get what is left of their limits. Calls with a body, and answers that are streamed, still use undici.
`,
  serve: `**ShouldRateLimit against the gateway.** Two thirds of the CPU of a question are \`node:http2\` itself, as the empty service shows, and a
large part of that is garbage collection: every stream of HTTP/2 is several objects. A call through the gateway is two short exchanges of
HTTP/1.1, which Node and the gateway do for about twice what the empty service costs: on \`node:http2\` three times cannot be reached.

**nginx against the empty server.** The HTTP port is the server of the gateway: bounded connections, slow callers, the order of calls on a
connection, a record of the call for metrics, the one spelling of the target. Besides the decision by four rules, it writes their
headers, which nginx reads and copies; an empty answer has none of this.
`,
  redis: `With 64 calls in flight and more, this process and Redis are busy for about the same time per call. Of the CPU time of a \`check\`
in this process half is the socket and the Redis client, and an eighth is what surrounds the store: rules, deadline, fallback,
verdict. Redis spends its time in the Lua interpreter, some 360 steps for a call by one rule: the engine has one form of each
algorithm and one way to decide a call, whatever its rules, and no shortcut for the commonest case. With 16 calls in flight and fewer, batches are
small, and a single call pays alone for what a batch shares: the clock, the state of the rule's hash, when it was created, and the
answer. In return a call is decided by all its rules at once, on the clock of the server, and a refusal costs nothing.
`,
}
