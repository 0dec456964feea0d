import { formatDuration } from 'diana-limiter'
import { LONGEST_CALL_US } from '../judging/bounds/rule-bounds.ts'
import type { Replayed } from '../replay.ts'

/** Returns notes that a reader of the numbers needs: what the log does not say, and what was assumed. */
export function notesOf(replayed: Replayed): string[] {
  const { tickUs, isEndTime, fields, late, latestUs, unroutable, judged } = replayed
  const notes: string[] = []
  if (tickUs > 1) {
    notes.push(
      `The log says when calls came only to ${formatDuration(tickUs / 1000)}: refusals are the least and the most over all orders and moments within that. ` +
        'A bin of a timeline may be off by one; sums are bounds.',
    )
  }
  if (isEndTime && !fields.has('duration')) {
    notes.push(
      'The log says when requests ended and not how long they took: they are taken as begun then. Log $request_time to correct that.',
    )
  } else if (isEndTime) notes.push('Requests are taken as begun when they ended, less the time that they took.')
  const countsByEnd = judged.some(({ judge }) => judge.rules.some(({ rule }) => rule.countWhen !== undefined))
  if (countsByEnd && !fields.has('duration')) {
    const assumed = tickUs > 1 ? `to last up to ${formatDuration(LONGEST_CALL_US / 1000)}` : 'to end at once'
    notes.push(
      `The log does not say how long requests took. Until it ends, a call takes a permit of a rule with countWhen: calls are assumed ${assumed}. Log $request_time to correct that.`,
    )
  }
  notes.push('What refused callers would have done is left out: some would have tried again, others not.')
  notes.push(
    'Calls that were refused at the time have the status of that refusal, whatever their service would have answered.',
  )
  if (late > 0) {
    notes.push(
      `${late} lines came out of order by up to ${formatDuration(Math.ceil(latestUs / 1000))}, and are taken as of the moment that was reached.`,
    )
  }
  if (unroutable > 0)
    notes.push(`${unroutable} requests have a target that the gateway answers with 400 before any rule is asked.`)
  for (const { judge } of judged.slice(0, 1)) {
    for (const { rule, untracked, callers } of judge.rules) {
      if (untracked > 0)
        notes.push(
          `Rule ${rule.id}: ${untracked} calls of callers beyond the first could not be counted one by one; raise --max-callers.`,
        )
      if (callers.isEstimate) notes.push(`Rule ${rule.id}: the number of callers is an estimate.`)
      if (rule.distributed) notes.push(`Rule ${rule.id} is counted here as if the log had all calls of the fleet.`)
    }
  }
  return notes
}
