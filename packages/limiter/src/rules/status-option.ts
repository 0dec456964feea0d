import type { Problem } from './explain.ts'
import { isMap } from './is-map.ts'

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
