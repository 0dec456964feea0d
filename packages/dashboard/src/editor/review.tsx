import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { Mistake, RuleDocument, Where } from '../api/generated.ts'
import type { Problem } from '../api/problem.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { problemOf, Refusal, useAnswer } from '../parts/answer.tsx'
import { useSettled } from '../parts/settled.ts'
import { Sheet } from '../parts/sheet.tsx'
import { showDiff } from './code-editor.ts'
import { Foretold } from './effects.tsx'
import { mergeTexts } from './merge-texts.ts'
import { ReplayLog } from './replay-log.tsx'
import { ChangedRules, OddRules, Why } from './why.tsx'

export interface ReviewProps {
  readonly where: Where
  /** The document as it was read, and the text that would replace it. */
  readonly base: RuleDocument
  readonly text: string
  readonly title?: string
  /** The text of the button that leaves the review. */
  readonly backText?: string
  /** The document was changed meanwhile: this is how it stands now, and the text on top of it. */
  readonly onMerged: (base: RuleDocument, text: string) => void
  /** The document as it is at its source now. */
  readonly onSaved: (saved: RuleDocument) => void
  readonly onBack: () => void
}

/** Shows a change for the last time before it is in force: the difference, its effect on past calls, and the reason for it. */
export function Review({ where, base, text, title, backText, onMerged, onSaved, onBack }: ReviewProps): JSX.Element {
  const { editor: texts } = viewMessages.value
  const [theirs, setTheirs] = useState<RuleDocument | undefined>(undefined)
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  const [isSaving, setSaving] = useState(false)
  const [conflicts, setConflicts] = useState(0)
  const [comment, setComment] = useState('')
  const [isNoted, setNoted] = useState(false)
  const note = useSettled(isNoted ? comment.trim() : '')
  const { answer: change } = useAnswer(() => api.changes(where, text, note), [where, text, note])

  const save = async () => {
    setSaving(true)
    try {
      // the last letters may not be in the text yet
      const noted =
        isNoted && comment.trim() !== '' ? (await api.changes(where, text, comment.trim())).noted : undefined
      const written = noted ?? text
      const { version } = await api.save(where, written, base.version, comment.trim())
      onSaved({ ...base, text: written, version })
    } catch (error) {
      const refusal = problemOf(error)
      const current = refusal.body.current as Pick<RuleDocument, 'text' | 'version'> | undefined
      if (refusal.status === 409 && current !== undefined) setTheirs({ ...base, ...current })
      else setProblem(refusal)
      setSaving(false)
    }
  }

  if (theirs !== undefined) {
    return (
      <Sheet title={texts.conflictTitle} onBack={onBack}>
        <p role="alert">{texts.conflict}</p>
        <Difference before={theirs.text} after={text} label={`${texts.theirs} → ${texts.yours}`} />
        <div class="actions">
          <button
            type="button"
            onClick={() => {
              const merged = mergeTexts(base.text, text, theirs.text)
              onMerged(theirs, merged.text)
              setConflicts(merged.conflicts)
              setTheirs(undefined)
            }}
          >
            {texts.keepMine}
          </button>
          <button
            type="button"
            class="quiet"
            onClick={() => {
              onMerged(theirs, theirs.text)
              onBack()
            }}
          >
            {texts.takeTheirs}
          </button>
        </div>
      </Sheet>
    )
  }
  const noted = note === '' ? undefined : change?.noted
  return (
    <Sheet title={title ?? texts.reviewTitle} onBack={onBack}>
      {conflicts > 0 && <p role="alert">{texts.mergeConflicts(conflicts)}</p>}
      {change && <ChangedRules change={change} />}
      {change && <OddRules change={change} />}
      <Difference before={base.text} after={noted ?? text} label={texts.diff} />
      <Foretold where={where} text={text} />
      <ReplayLog where={where} text={text} />
      <Why comment={comment} isNoted={isNoted} change={change} onComment={setComment} onNote={setNoted} />
      {problem && <Refusal problem={problem} />}
      {problem && <ServerMistakes problem={problem} />}
      <div class="actions">
        <button type="button" disabled={isSaving} onClick={save}>
          {texts.save}
        </button>
        <button type="button" class="quiet" onClick={onBack}>
          {backText ?? texts.back}
        </button>
      </div>
    </Sheet>
  )
}

function Difference({ before, after, label }: { before: string; after: string; label: string }): JSX.Element {
  const host = useRef<HTMLDivElement>(null)
  const { unchangedLines: unchanged } = viewMessages.value.editor
  useEffect(() => showDiff(host.current!, { before, after, label, unchanged }), [before, after, unchanged])
  return (
    <section aria-label={label}>
      <h3>{label}</h3>
      <div class="code diff" ref={host} />
    </section>
  )
}

/** Shows the mistakes that the gateway found and the check in the editor had not. */
function ServerMistakes({ problem }: { problem: Problem }): JSX.Element {
  const { editor: texts } = viewMessages.value
  const mistakes = (problem.body.mistakes ?? []) as readonly Mistake[]
  return (
    <ul class="mistakes">
      {mistakes.map(({ line, column, message }) => (
        <li key={`${line}:${column}`}>
          {texts.line(line)}: {message}
        </li>
      ))}
    </ul>
  )
}
