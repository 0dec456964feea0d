const CALLS = 600_000
const SLICES = 12

/** Nanoseconds of one call once it is warm: the median of slices, since a machine has other things to do now and then. */
export async function timeCalls(decide) {
  // awaiting what is no promise would cost what the caller need not pay
  const isAsync = decide(0) instanceof Promise
  const loop = async (from, to) => {
    if (isAsync) for (let i = from; i < to; i++) await decide(i)
    else for (let i = from; i < to; i++) decide(i)
  }
  await loop(0, CALLS)
  const size = CALLS / SLICES
  const slices = []
  const cpu = process.cpuUsage()
  for (let slice = 0; slice < SLICES; slice++) {
    const from = CALLS + slice * size
    const started = process.hrtime.bigint()
    await loop(from, from + size)
    slices.push(Number(process.hrtime.bigint() - started) / size)
  }
  const { user, system } = process.cpuUsage(cpu)
  const value = slices.sort((a, b) => a - b)[SLICES / 2]
  return { value, 'CPU, ns': ((user + system) * 1000) / CALLS }
}
