import './review.css'
import type { JSX } from 'preact'
import type { DocumentChange } from '../api/generated.ts'
import { changeMessages } from '../i18n/changes/index.ts'

/** Longer comments are cut by the gateway. */
const LONGEST = 300
const MOST_RULES = 30

interface WhyProps {
  readonly comment: string
  readonly isNoted: boolean
  /** Undefined until it is known. */
  readonly change: DocumentChange | undefined
  readonly onComment: (comment: string) => void
  readonly onNote: (isNoted: boolean) => void
}

/** Shows the fields for the reason of a change, which may stand above the rule, too. */
export function Why({ comment, isNoted, change, onComment, onNote }: WhyProps): JSX.Element {
  const { review: texts } = changeMessages.value
  const hasRule = change?.rules.some(({ change: kind }) => kind !== 'removed') === true
  return (
    <div class="why">
      <label>
        <span>{texts.why}</span>
        <input
          value={comment}
          maxLength={LONGEST}
          aria-describedby="why-means"
          onInput={event => onComment(event.currentTarget.value)}
        />
      </label>
      <p class="hush" id="why-means">
        {texts.whyMeans}
      </p>
      {hasRule && (
        <label class="check">
          <input type="checkbox" checked={isNoted} onChange={event => onNote(event.currentTarget.checked)} />
          <span>{texts.note}</span>
        </label>
      )}
      {isNoted && comment.trim() !== '' && change?.noted === undefined && <p class="hush">{texts.noNote}</p>}
    </div>
  )
}

const MOST_FINDINGS = 20

/** Lists findings about the rules: rules without effect first. */
export function OddRules({ change }: { readonly change: DocumentChange }): JSX.Element | null {
  const { review: texts } = changeMessages.value
  const faults = change.findings.filter(({ isFault }) => isFault)
  if (faults.length === 0) return null
  return (
    <ul class="odd-rules" aria-label={texts.odd}>
      {faults.slice(0, MOST_FINDINGS).map(({ rule, message }) => (
        <li key={`${rule} ${message}`}>
          <span class="badge changed">{texts.odd}</span> {rule}: {message}
        </li>
      ))}
    </ul>
  )
}

/** Shows the rules that a change adds, changes and removes. */
export function ChangedRules({ change }: { readonly change: DocumentChange }): JSX.Element | null {
  const { review: texts } = changeMessages.value
  const { rules, others } = change
  if (rules.length === 0 && !others) return null
  return (
    <ul class="changed-rules" aria-label={texts.rules}>
      {rules.slice(0, MOST_RULES).map(({ id, change: kind }) => (
        <li key={`${kind} ${id}`}>
          <span class={`badge ${kind}`}>{texts[kind]}</span> {id}
        </li>
      ))}
      {rules.length > MOST_RULES && <li>{texts.more(rules.length - MOST_RULES)}</li>}
      {others && (
        <li>
          <span class="badge changed">{texts.changed}</span> {texts.others}
        </li>
      )}
    </ul>
  )
}
