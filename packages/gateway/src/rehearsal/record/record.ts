import type { Verdict } from 'diana-limiter'
import type { LogEntry } from '../../replay/formats/format.ts'
import { LogError, openLog } from '../../replay/reading/log-chunks.ts'
import { type LogStatus, readLog } from '../../replay/reading/log-reader.ts'
import type { Case, Step } from '../cases/case-file.ts'
import type { RuleSet } from '../run/rule-set.ts'
import { runCase } from '../run/run-case.ts'

export interface RecordOptions {
  readonly log: string
  readonly format: string | undefined
  /** The number of calls after which reading ends, so that live traffic can be recorded. */
  readonly most: number
  readonly input: AsyncIterable<string | Uint8Array>
}

/** Credentials are never written into a file of cases. */
const SECRET = /^(?:authorization|cookie|proxy-authorization|x-api-key)$/

/** Returns the lines of a file of cases: the calls of a log, and what the rules make of them now. Throws a LogError. */
export async function recordCases(rules: RuleSet, { log, format, most, input }: RecordOptions): Promise<string[]> {
  const entries = await readEntries(rules, { log, format, most, input })
  if (entries.length === 0) throw new LogError(`${log} has no line that could be read as a call; say --format`)
  entries.sort((one, other) => one.at - other.at)
  const beginUs = Math.floor(entries[0]!.at / 1000) * 1000
  const steps = entries.map(entry => stepOf(entry, beginUs))
  const recorded: Case = {
    ...{ name: 'recorded', place: steps[0]!.place, beginUs, processes: 1, outages: [], steps },
  }
  // calls that wait are decided after later ones
  const verdicts = new Map<Step, Verdict>()
  await runCase(rules, recorded, { onCall: (_, verdict, __, step) => void verdicts.set(step, verdict) })
  const from = log === '-' ? 'standard input' : log
  const lines = [
    `# ${steps.length} calls of ${from}, and what ${rules.file} made of them when they were recorded`,
    `begin: ${new Date(beginUs / 1000).toISOString()}`,
    'cases:',
    `  - name: ${JSON.stringify(`calls of ${from}`)}`,
    '    steps:',
  ]
  for (const step of steps) lines.push(`      - ${lineOf(step, verdicts.get(step))}`)
  return lines
}

async function readEntries(rules: RuleSet, { log, format, most, input }: RecordOptions): Promise<LogEntry[]> {
  const named = JSON.stringify(rules.document).toLowerCase()
  const status: LogStatus = { name: log, reader: undefined, lines: 0, bad: 0, badLines: [], fault: undefined }
  const source = await openLog(log, input)
  const isWanted = (name: string): boolean => named.includes(name.slice(name.indexOf(':') + 1))
  const entries: LogEntry[] = []
  try {
    for await (const batch of readLog(source, { format, fields: undefined, isWanted }, status)) {
      for (const entry of batch) if (entries.length < most && entry.target.startsWith('/')) entries.push(entry)
      if (entries.length >= most) break
    }
  } finally {
    source.close()
  }
  if (status.reader?.time === 'end') for (const entry of entries) if (entry.durationUs > 0) entry.at -= entry.durationUs
  return entries
}

function stepOf(entry: LogEntry, beginUs: number): Step {
  const place = { file: '', line: 0, column: 0 }
  const headers = Object.fromEntries(Object.entries(entry.headers ?? {}).filter(([name]) => !SECRET.test(name)))
  return {
    place,
    atUs: Math.max(0, Math.round(entry.at - beginUs)),
    method: entry.method,
    target: entry.target.replaceAll('{n}', '%7Bn%7D'),
    who: { ip: entry.peer, host: entry.host, headers, attributes: entry.attributes ?? {} },
    loop: { calls: 1, everyUs: 0 },
    takesUs: Number.isNaN(entry.durationUs) ? 0 : Math.round(entry.durationUs),
    ends: entry.left ? 0 : (entry.status ?? 200),
    process: 1,
    expect: { place, refusedBy: {} },
  }
}

function lineOf(step: Step, verdict: Verdict | undefined): string {
  const { ip, host, headers, attributes } = step.who
  const who: Record<string, unknown> = { ...attributes, ...(ip && { ip }), ...(host && { host }) }
  if (Object.keys(headers).length > 0) who.headers = headers
  const words = [
    `at: ${timeOf(step.atUs)}`,
    `call: ${JSON.stringify(`${step.method} ${step.target}`)}`,
    `who: ${JSON.stringify(who)}`,
  ]
  if (step.takesUs > 0) words.push(`takes: ${timeOf(step.takesUs)}`)
  if (step.ends !== 200) words.push(`ends: ${step.ends === 0 ? 'left' : step.ends}`)
  words.push(`expect: ${expectationOf(verdict)}`)
  return `{ ${words.join(', ')} }`
}

function expectationOf(verdict: Verdict | undefined): string {
  if (verdict === undefined || verdict.allowed) return 'pass'
  return verdict.rule === undefined ? (verdict.reason ?? 'refused') : `refused by ${verdict.rule}`
}

function timeOf(us: number): string {
  if (us % 1_000_000 === 0) return `${us / 1_000_000}s`
  return us % 1000 === 0 ? `${us / 1000}ms` : `${us}us`
}
