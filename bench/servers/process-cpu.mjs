import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** The user and system time of a process and of all processes under it, in microseconds. */
export async function cpuMicrosecondsOf(id) {
  const ticks = await Promise.all([id, ...(await processesUnder(id))].map(ticksOf))
  return (ticks.reduce((sum, one) => sum + one, 0) * 1e6) / ticksPerSecond
}

async function processesUnder(id) {
  const text = await readFile(`/proc/${id}/task/${id}/children`, 'utf8')
  const children = text.split(' ').filter(Boolean).map(Number)
  return (await Promise.all(children.map(async child => [child, ...(await processesUnder(child))]))).flat()
}

/** Fields 14 and 15 of the status, counted behind the name in parentheses. */
async function ticksOf(id) {
  const fields = (await readFile(`/proc/${id}/stat`, 'utf8')).replace(/^.*\) /s, '').split(' ')
  return Number(fields[11]) + Number(fields[12])
}
