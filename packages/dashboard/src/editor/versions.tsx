import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { Version, Where } from '../api/generated.ts'
import type { Problem } from '../api/problem.ts'
import { changeMessages } from '../i18n/changes/index.ts'
import { formatMoment } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { problemOf, Refusal, useAnswer } from '../parts/answer.tsx'

interface VersionsProps {
  readonly where: Where
  /** The version in force: with each new one there is one more before it. */
  readonly version: string
  readonly onRollBack: (text: string) => void
}

/** Shows the earlier versions of a document, the change that replaced each, and the way back. */
export function Versions({ where, version, onRollBack }: VersionsProps): JSX.Element | null {
  const { editor: texts } = viewMessages.value
  const { answer } = useAnswer(() => api.versions(where), [where, version])
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  if (answer === undefined || answer.length === 0) return null
  return (
    <section class="versions" aria-label={texts.versions}>
      <h3>{texts.versions}</h3>
      <ol class="history">
        {answer.map(one => (
          <li key={one.id}>
            {texts.replacedAt(formatMoment(one.at))}{' '}
            <button
              type="button"
              class="quiet"
              onClick={() => api.version(one.id).then(onRollBack, error => setProblem(problemOf(error)))}
            >
              {texts.rollBack}
            </button>
            <ReplacedBy version={one} />
          </li>
        ))}
      </ol>
      {problem && <Refusal problem={problem} />}
    </section>
  )
}

/** Shows the change that replaced a version: its rules, its reason, and the user and address that made it. */
function ReplacedBy({
  version: { from, who, comment, rules = [], changed = 0 },
}: {
  readonly version: Version
}): JSX.Element {
  const { review: texts } = changeMessages.value
  const kinds = (['added', 'changed', 'removed'] as const).flatMap(kind => {
    const ids = rules.filter(({ change }) => change === kind).map(({ id }) => id)
    return ids.length === 0 ? [] : [`${texts[kind]}: ${ids.join(', ')}`]
  })
  const more = changed > rules.length ? [texts.more(changed - rules.length)] : []
  return (
    <>
      <small class="replaced-rules">{[...kinds, ...more].join(' · ')}</small>
      {comment !== undefined && <q class="comment">{comment}</q>}
      {from !== undefined && <small>{[who, from].filter(Boolean).join(' · ')}</small>}
    </>
  )
}
