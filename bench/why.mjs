// Where a mark is missed, why: what the time goes into, as `node --cpu-prof` and the cuts of the script showed it, and what
// the floor is. The figures themselves are in the tables.
export const why = {
  memory: `**50 000 keys against a bare Map.** Both wait for memory, not for instructions: the Map touches its bucket, its entry and the text of
the key, and Diana touches the numbers of the key besides, which lie in a typed array of their own. That array is what makes a
key cost a quarter of what a peer's costs; the ratio shrinks again where nothing fits into a cache, as growth to ten million
keys shows. **Refusals** ask the meter once more when the call would pass, which an admission need not. **Four rules**: a
third of a check is reading the call (matching, three dimensions, keys), a third the counting, a third the verdict with a
decision per rule, which is all that is allocated. **A sliding window** keeps two numbers per segment instead of one: the
second, how far its calls ran ahead of an even pace, is what brings a saturated caller to its full limit.
`,
  filters: `The floor is "bare, two headers more": writing the two headers alone costs a fast framework more than the twentieth that the
mark allows, and all peers that write headers pay it. What Diana herself adds is the difference between "bare" and "no headers":
the call, its address and path as the router takes them, the judgement, and the watch for a caller who leaves.
`,
  redis: `The client's side is the bound: half of its time is the Redis client itself, which writes one argument per caller and reads two
numbers per charge, and that is the floor of any protocol that names each caller and answers each call. Redis spends its time
evenly on reading the arguments, on reading and writing the states (one \`HMGET\` and one \`HSET\` per rule and batch), and on
judging. A batch of one pays for the whole script alone, which is why a lone call is slower than a bare \`EVALSHA\` of a few lines.
`,
}
