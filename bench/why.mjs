// Where a mark is missed, why: what the time goes into, as `node --cpu-prof` and the cuts of the script showed it, and what
// the floor is. The figures themselves are in the tables.
export const why = {
  memory: `**50 000 keys against a bare Map.** Both wait for memory, not for instructions, and seven tenths of Diana's time is the same
look into the same kind of Map: its bucket, its entry and the text of the key. What she adds are the numbers of the key, in a typed
array of their own, which make a key cost a quarter of what a peer's costs, and the answer: what is left, until when, whether the
call may wait. While that is worked out the processor cannot fetch the next key yet, as it does for the Map, whose keys are asked
for in the order in which they came; so the ratio moves with the machine's caches, between 1.4 and 1.7 where it is quiet.
`,
  filters: `The floor is "bare, two headers that change": writing what no two answers have in common costs a fast framework more than
the twentieth that the mark allows, since Node checks every name and value by a regular expression and text put together anew
must be made one piece for it; all peers that write headers pay that. Of what Diana herself adds to Fastify by one
rule, two thirds are the judgement and a third the headers, whose text is found again where another caller stood just there;
the filter between them is a tenth of a microsecond. With four rules the headers are four times as long, and cost nearly as much
as the four judgements. Express gives each request a hidden class of its own, so that every property asked of it is looked up
the slow way. Under full load on this machine a microsecond of mere spinning in a hook shows as 1.7 or more.
`,
  gateway: `"bare node:http and undici" is not the floor of the gateway any more: calls without a body whose answer arrives in one piece, as
here, are written and read without undici, which is half of what the bare proxy spends. What the gateway adds is the decision by
four rules and the text of their headers; its own work (one spelling of the target, headers both ways, the order of calls on a
connection, the pace of callers, connections to the service, a record of the call); and a longer head, since services are told
who called and callers what is left of their limits. Calls with a body, and answers that are streamed, still go through undici.
`,
  redis: `With 64 calls in flight two batches of 32 are under way, and neither side is busy all the time: Redis answers nothing of what it
has read before it has judged all of it, and each side is woken by the other. So the ratio grows with what is in flight, as the
table for 128 shows. Of the time Redis spends on a batch by one rule a fifth is reading and writing the socket, a fifth the
fixed part of the script (its argument, its functions), a third judging, and the rest \`HMGET\` and \`HSET\`, one each per rule. Of the
client's time two fifths are the Redis client and the socket, a third is spelling the batch and reading the answers. A call
that comes alone pays the fixed part by itself: four tenths more than a script of three lines.
`,
}
