import type { ComponentChildren, JSX } from 'preact'
import { useCallback, useEffect, useState } from 'preact/hooks'
import { Problem } from '../api/problem.ts'
import { tokenIsAsked } from '../api/session.ts'
import { messages } from '../i18n/index.ts'

export interface Asked<Answer> {
  readonly answer: Answer | undefined
  readonly problem: Problem | undefined
  readonly again: () => void
}

/** Asks when a view opens, and again when something it depends on changes. */
export function useAnswer<Answer>(question: () => Promise<Answer>, dependencies: readonly unknown[]): Asked<Answer> {
  const [state, setState] = useState<Omit<Asked<Answer>, 'again'>>({ answer: undefined, problem: undefined })
  const [times, setTimes] = useState(0)
  useEffect(() => {
    let isWanted = true
    question().then(
      answer => isWanted && setState({ answer, problem: undefined }),
      error => isWanted && setState(before => ({ ...before, problem: problemOf(error) })),
    )
    return () => {
      isWanted = false
    }
  }, [...dependencies, times])
  const again = useCallback(() => setTimes(count => count + 1), [])
  return { ...state, again }
}

/** Returns a thrown value as a problem that can be shown; a missing token asks for one. */
export function problemOf(error: unknown): Problem {
  const problem = error instanceof Problem ? error : new Problem(0, String(error))
  if (problem.status === 401) tokenIsAsked.value = true
  return problem
}

/** Shows a view while it asks, when it was refused, and when it has its answer. */
export function Answered<Answer>(props: {
  readonly asked: Asked<Answer>
  readonly children: (answer: Answer) => ComponentChildren
}): JSX.Element {
  const { answer, problem, again } = props.asked
  const { loading } = messages.value
  return (
    <>
      {problem !== undefined && <Refusal problem={problem} again={again} />}
      {answer !== undefined ? props.children(answer) : problem === undefined && <p class="hush">{loading}</p>}
    </>
  )
}

export function Refusal({ problem, again }: { problem: Problem; again?: () => void }): JSX.Element {
  const { failed, retry, connection } = messages.value
  return (
    <div class="refusal" role="alert">
      <p>{problem.status === 0 ? connection.banner : `${failed} ${problem.message}`}</p>
      {again && (
        <button type="button" class="quiet" onClick={again}>
          {retry}
        </button>
      )}
    </div>
  )
}
