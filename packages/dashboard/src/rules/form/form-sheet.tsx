import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.ts'
import type { RuleDocument, RuleDraft, Where } from '../../api/generated.ts'
import type { Problem } from '../../api/problem.ts'
import type { AppliedChange } from '../../editor/applied.tsx'
import { rules } from '../../figures/live.ts'
import { changeMessages } from '../../i18n/changes/index.ts'
import { viewMessages } from '../../i18n/views/index.ts'
import { problemOf, Refusal, useAnswer } from '../../parts/answer.tsx'
import { later } from '../../parts/later.tsx'
import { useSettled } from '../../parts/settled.ts'
import { Sheet } from '../../parts/sheet.tsx'
import { byField, type Field } from './field-of.ts'
import { changesBetween, formOptions, isMap, type OptionChange, type Options } from './form-options.ts'
import { RuleFields } from './rule-fields.tsx'
import { type FormNames, ownOptions, type RuleForm, withFields } from './rule-form.ts'

const Review = later(() => import('../../editor/review.tsx').then(module => module.Review))

export interface FormSheetProps {
  readonly title: string
  /** The form at the beginning. */
  readonly start: RuleForm
  /** The rule that is changed, with all its options; undefined for a new one. */
  readonly changed: { readonly id: string; readonly options: Options; readonly others: Options } | undefined
  /** The documents that can hold the rule; the first one is the usual choice. */
  readonly places: readonly Where[]
  readonly names: FormNames
  readonly onApplied: (change: AppliedChange) => void
  readonly onBack: () => void
  /** Back to the choice of templates. */
  readonly onOther?: (() => void) | undefined
}

interface Reviewed {
  readonly base: RuleDocument
  readonly text: string
}

/** Shows a rule as a form: checked while it is filled, shown as it will be written, reviewed before it is in force. */
export function FormSheet(props: FormSheetProps): JSX.Element {
  const { title, start, changed, places, names, onApplied, onBack, onOther } = props
  const { form: texts, review } = changeMessages.value
  const [form, setForm] = useState(start)
  const [where, setWhere] = useState(places[0]!)
  const [isShadow, setShadow] = useState(false)
  const [reviewed, setReviewed] = useState<Reviewed | undefined>(undefined)
  const [found, setFound] = useState<{ problem?: Problem; draft?: RuleDraft }>({})
  const wanted = JSON.stringify(changesOf(isShadow ? { ...form, beyond: 'shadow' } : form, props))
  const ask = (set: string) => api.draft(where, changed?.id, JSON.parse(set) as OptionChange[])
  const settled = useSettled(wanted)
  const asked = useAnswer(() => ask(settled).then(draft => ({ draft, settled })), [where, settled])
  const isChecked = asked.answer?.settled === wanted && asked.problem === undefined
  const draft = asked.answer?.draft
  const isSame = changed !== undefined && wanted === '[]'

  const openReview = async () => {
    try {
      const fresh = await ask(wanted)
      setFound({ draft: fresh })
      if (fresh.mistakes.length === 0 && fresh.text !== fresh.base.text) setReviewed(fresh)
    } catch (error) {
      setFound({ problem: problemOf(error) })
    }
  }

  if (reviewed !== undefined) {
    return (
      <Review
        where={where}
        base={reviewed.base}
        text={reviewed.text}
        backText={review.backToForm}
        onMerged={(base, text) => setReviewed({ base, text })}
        onSaved={saved => onApplied({ where, before: reviewed.base.text, after: saved.text })}
        onBack={() => setReviewed(undefined)}
      />
    )
  }
  const own = ownOptions(form, names.algorithms)
  const mistakes = new Map<Field | undefined, readonly string[]>(byField(draft?.mistakes ?? [], form.id, own))
  if (changed === undefined && isTaken(form.id)) mistakes.set('id', [texts.nameTaken])
  const problem = found.problem ?? asked.problem
  const canReview = !isSame && mistakes.size === 0
  return (
    <Sheet title={title} onBack={onBack}>
      <form
        class="rule-form"
        onSubmit={event => {
          event.preventDefault()
          if (canReview) openReview()
        }}
      >
        <div class="rule-fields">
          {places.length > 1 && <Places places={places} where={where} onChoose={setWhere} />}
          <RuleFields
            form={form}
            set={part => setForm(before => withFields(before, part, names.algorithms))}
            mistakes={mistakes}
            names={names}
            isNew={changed === undefined}
          />
          {changed === undefined && (
            <label class="check">
              <input type="checkbox" checked={isShadow} onChange={event => setShadow(event.currentTarget.checked)} />
              <span>{texts.startInShadow}</span>
            </label>
          )}
        </div>
        <section class="rule-written" aria-label={texts.yaml}>
          <h3>{texts.yaml}</h3>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, and a region that scrolls must be reachable by keyboard */}
          <pre class="yaml" tabIndex={0}>
            {draft?.rule ?? ''}
          </pre>
          {changed !== undefined && Object.keys(changed.others).length > 0 && (
            <p class="hush">
              {texts.kept} <code>{namesIn(changed.others).join(', ')}</code>
            </p>
          )}
          <p role="status" class={mistakes.size === 0 ? 'well' : 'ill'}>
            {mistakes.size > 0
              ? viewMessages.value.editor.mistakes([...mistakes.values()].flat().length)
              : isChecked
                ? texts.clean
                : texts.checking}
          </p>
          {mistakes.has(undefined) && (
            <ul class="mistake">
              {mistakes.get(undefined)!.map(text => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          )}
          {problem && <Refusal problem={problem} />}
        </section>
        <div class="actions">
          <button type="submit" disabled={!canReview}>
            {texts.review}
          </button>
          <button type="button" class="quiet" onClick={onBack}>
            {texts.cancel}
          </button>
          {onOther && (
            <button type="button" class="quiet" onClick={onOther}>
              {texts.otherTemplate}
            </button>
          )}
          {isSame && <p class="hush">{texts.unchanged}</p>}
        </div>
      </form>
    </Sheet>
  )
}

interface PlacesProps {
  readonly places: readonly Where[]
  readonly where: Where
  readonly onChoose: (where: Where) => void
}

function Places({ places, where, onChoose }: PlacesProps): JSX.Element {
  const { form: texts } = changeMessages.value
  return (
    <fieldset class="field">
      <legend>{texts.where}</legend>
      <div class="inputs">
        {places.map(place => (
          <label class="choice" key={place}>
            <input type="radio" name="where" checked={place === where} onChange={() => onChoose(place)} />
            <span>{texts.places[place]}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

function changesOf(form: RuleForm, { start, changed, names }: FormSheetProps): readonly OptionChange[] {
  const optionsOf = (one: RuleForm) => formOptions(one, names.algorithms)
  if (changed === undefined) {
    return Object.entries(optionsOf(form)).map(([name, value]) => ({ path: [name], value }))
  }
  return changesBetween(changed.options, optionsOf(start), optionsOf(form))
}

/** Options by their names, those inside others with both: `match.host`. */
function namesIn(options: Options): readonly string[] {
  return Object.entries(options).flatMap(([name, value]) =>
    isMap(value) ? Object.keys(value).map(inner => `${name}.${inner}`) : [name],
  )
}

function isTaken(id: string): boolean {
  return rules.value?.some(rule => rule.id === id.trim()) === true
}
