/** How many milliseconds of processor time this process spends while `run` runs: what other processes do does not count. */
export function cpuTimeOf(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
