import type { Verdict } from 'diana-limiter'
import type { LoggedCall } from '../judging/judge.ts'
import { isoOf } from './report.ts'

/** The decision that the gateway logged. */
interface LoggedVerdict extends LoggedCall {
  readonly verdict?: 'passed' | 'refused' | undefined
  readonly rule?: string | undefined
}

const SHOWN = 5

/** Compares what rules decide in a replay with what the gateway has logged of its own decisions. */
export class Verification {
  calls = 0
  differences = 0
  readonly first: string[] = []

  readonly onVerdict = (logged: LoggedVerdict, verdict: Verdict | undefined): void => {
    if (logged.verdict === undefined || verdict === undefined) return
    this.calls++
    const now = verdict.allowed ? 'passed' : 'refused'
    if (now === logged.verdict && (verdict.allowed || verdict.rule === logged.rule)) return
    this.differences++
    if (this.first.length >= SHOWN) return
    const [was, is] = [said(logged.verdict, logged.rule), said(now, verdict.rule)]
    this.first.push(`${isoOf(logged.at)} (turn ${logged.turn}): the gateway ${was}, the replay ${is}`)
  }
}

function said(verdict: string, rule: string | undefined): string {
  return verdict === 'passed' ? 'let it pass' : `refused it by ${rule ?? 'the lists of callers'}`
}
