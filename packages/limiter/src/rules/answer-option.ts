import type { Problem } from './explain.ts'
import { isMap } from './is-map.ts'
import type { Answer, HeaderStyle } from './rule.ts'

/** The forms of the rate-limit headers. */
export const headerStyles: readonly HeaderStyle[] = ['draft-11', 'draft-7', 'draft-6', 'legacy', 'none']

/** Lists the fields of an answer that make no sense together, each with what is wrong. */
export function answerFaults({
  status: code = 503,
  body: sent,
  contentType: type,
}: Partial<Answer>): [string, string][] {
  const least = `must be at least 400, not ${code}`
  const faults: [string, string][] = []
  if (code < 400 && sent === undefined) faults.push(['status', `${least}, unless a body says that it is a refusal`])
  else if (code >= 300 && code < 400) faults.push(['status', `${least}, or from 200 to 299 with a body`])
  else if (code === 204 || code === 205) faults.push(['status', `${code} cannot have a body: write 200`])
  if (type !== undefined && sent === undefined) faults.push(['contentType', 'is the type of a body: add body'])
  return faults
}

type Options = Readonly<Record<string, unknown>>

/** The options of a document or of a rule, with `status` where the schema has it; what is wrong with that is said of `status`. */
export interface FoldedStatus {
  readonly options: Options
  readonly problems: readonly Problem[]
  asGiven(problems: readonly Problem[]): readonly Problem[]
}

/** Writes `status: 429` out, which is short for `answer: { status: 429 }`. */
export function foldStatus(given: Options): FoldedStatus {
  const { status, answer = {}, ...rest } = given
  if (status === undefined || !isMap(answer)) return { options: given, problems: [], asGiven: problems => problems }
  const what = 'is also in answer: write one of them'
  return {
    options: { ...rest, answer: { ...answer, status } },
    problems: answer.status === undefined ? [] : [{ path: ['status'], atName: true, what }],
    asGiven: problems =>
      problems.map(one => (one.path.join('.') === 'answer.status' ? { ...one, path: ['status'] } : one)),
  }
}
