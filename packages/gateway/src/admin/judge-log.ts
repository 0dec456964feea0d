import type { RuleDocument } from 'diana-limiter'
import { Refusal } from '../http/refusal.ts'
import { FormatError } from '../replay/formats/choose.ts'
import { LogError, type LogSource } from '../replay/reading/log-chunks.ts'
import { replay } from '../replay/replay.ts'
import { rulePlots } from '../replay/report/page/html-page.ts'
import { reportOf } from '../replay/report/report.ts'

const maxCallers = 20_000

type Replayed = ReturnType<typeof reportOf>

/** The answer of the admin API about a replayed log. */
export interface JudgedLog extends Pick<Replayed, 'calls' | 'refused' | 'unjudged'> {
  readonly name: string
  readonly format: string
  readonly lines: number
  readonly bad: number
  readonly rules: readonly (Pick<Replayed['rules'][number], 'id' | 'calls' | 'refused'> & { readonly plots: string })[]
  readonly notes: readonly string[]
}

/** Returns what a document would have done to the calls of a log, with a plot for each rule. */
export async function judgeLog(
  document: RuleDocument,
  source: LogSource,
  format: string | undefined,
): Promise<JudgedLog> {
  try {
    const report = reportOf(await replay({ documents: [document], logs: [source], format, maxKeys: maxCallers }))
    const { log, calls, refused, rules, unjudged } = report
    return {
      ...{ name: source.name, format: log.files[0]!.format, lines: log.lines, bad: log.bad, calls, refused },
      rules: rules.map(rule => ({ id: rule.id, calls: rule.calls, refused: rule.refused, plots: rulePlots(rule) })),
      ...{ unjudged, notes: log.notes },
    }
  } catch (error) {
    if (error instanceof FormatError || error instanceof LogError) throw new Refusal(422, error.message)
    throw error
  }
}
