/** Makes calls, so many at a time, for so long; how many were made, and in how many nanoseconds. */
export async function flood(decide, { inFlight, ms }) {
  const started = process.hrtime.bigint()
  const until = performance.now() + ms
  let calls = 0
  const caller = async () => {
    while (performance.now() < until) await decide(calls++)
  }
  await Promise.all(Array.from({ length: inFlight }, caller))
  return { calls, ns: Number(process.hrtime.bigint() - started) }
}
