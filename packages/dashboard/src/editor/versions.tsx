import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { Problem } from '../api/problem.ts'
import type { Where } from '../api/types.ts'
import { formatMoment } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { problemOf, Refusal, useAnswer } from '../parts/answer.tsx'

interface VersionsProps {
  readonly where: Where
  /** The version in force: with each new one there is one more before it. */
  readonly version: string
  readonly onRollBack: (text: string) => void
}

/** What stood there before, and the way back. */
export function Versions({ where, version, onRollBack }: VersionsProps): JSX.Element | null {
  const { editor: texts } = messages.value
  const { answer } = useAnswer(() => api.versions(where), [where, version])
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  if (answer === undefined || answer.length === 0) return null
  return (
    <section class="versions" aria-label={texts.versions}>
      <h3>{texts.versions}</h3>
      <ol class="history">
        {answer.map(({ id, at }) => (
          <li key={id}>
            {texts.replacedAt(formatMoment(at))}{' '}
            <button
              type="button"
              class="quiet"
              onClick={() => api.version(id).then(onRollBack, error => setProblem(problemOf(error)))}
            >
              {texts.rollBack}
            </button>
          </li>
        ))}
      </ol>
      {problem && <Refusal problem={problem} />}
    </section>
  )
}
