import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { RuleDocument } from '../api/generated.ts'
import type { Problem } from '../api/problem.ts'
import { changeMessages } from '../i18n/changes/index.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { problemOf, Refusal } from '../parts/answer.tsx'
import { Sheet } from '../parts/sheet.tsx'
import type { AppliedChange } from './applied.tsx'
import { mergeTexts } from './merge-texts.ts'
import { Review } from './review.tsx'

interface UndoProps {
  readonly change: AppliedChange
  readonly onUndone: (change: AppliedChange) => void
  readonly onBack: () => void
}

/** Returns the document as it is now, without one change; later changes of others stay. */
export async function withoutChange({ where, before, after }: AppliedChange): Promise<Draft> {
  const base = await api.document(where)
  return { base, text: mergeTexts(after, before, base.text).text }
}

interface Draft {
  readonly base: RuleDocument
  readonly text: string
}

/** Takes a change back, after the same review as any other change. */
export function Undo({ change, onUndone, onBack }: UndoProps): JSX.Element {
  const { review: texts } = changeMessages.value
  const [draft, setDraft] = useState<Draft | undefined>(undefined)
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  useEffect(() => {
    withoutChange(change).then(setDraft, error => setProblem(problemOf(error)))
  }, [change])
  if (draft === undefined) {
    return (
      <Sheet title={texts.undoTitle} onBack={onBack}>
        {problem ? <Refusal problem={problem} /> : <p class="hush">{viewMessages.value.loading}</p>}
      </Sheet>
    )
  }
  return (
    <Review
      where={change.where}
      base={draft.base}
      text={draft.text}
      title={texts.undoTitle}
      backText={texts.close}
      onMerged={(base, text) => setDraft({ base, text })}
      onSaved={saved => onUndone({ where: change.where, before: draft.base.text, after: saved.text })}
      onBack={onBack}
    />
  )
}
