const CALLS = 600_000
const SLICES = 12

/** The last answer, so that the compiler cannot leave out what makes it. */
export let lastAnswer

/** Nanoseconds of one call once it is warm: the median of slices, since a machine has other things to do now and then. */
export async function timeCalls(decide, calls = CALLS) {
  // awaiting what is no promise would cost what the caller need not pay
  const first = decide(0)
  const isAsync = first instanceof Promise
  await first
  const loop = async (from, to) => {
    if (isAsync) for (let i = from; i < to; i++) lastAnswer = await decide(i)
    else for (let i = from; i < to; i++) lastAnswer = decide(i)
  }
  await loop(0, calls)
  const size = calls / SLICES
  const slices = []
  const cpu = process.cpuUsage()
  for (let slice = 0; slice < SLICES; slice++) {
    const from = calls + slice * size
    const started = process.hrtime.bigint()
    await loop(from, from + size)
    slices.push(Number(process.hrtime.bigint() - started) / size)
  }
  const { user, system } = process.cpuUsage(cpu)
  const value = slices.sort((a, b) => a - b)[SLICES / 2]
  return { value, 'CPU, ns': ((user + system) * 1000) / calls }
}
