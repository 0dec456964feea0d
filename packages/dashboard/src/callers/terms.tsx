import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api, type NamedCaller } from '../api/api.ts'
import type { Caller, Override, Rule } from '../api/generated.ts'
import { rules } from '../figures/live.ts'
import { formatMoment, formatNumber } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { useAnswer } from '../parts/answer.tsx'
import { Sheet } from '../parts/sheet.tsx'
import { nameOf } from './blocks.tsx'
import { ListedCallers } from './listed-callers.tsx'
import { NamedCallerFields } from './named-caller.tsx'

/** Does something, and then says a sentence about it. */
export type Act = (action: Promise<unknown>, sentence: string | (() => string)) => void

interface TermsPanelProps {
  readonly overrides: readonly Override[]
  /** Undefined if this token may not change anything. */
  readonly act: Act | undefined
}

/** Shows the limits that operators have given single callers, and a way to give one, or credit, by name. */
export function TermsPanel({ overrides, act }: TermsPanelProps): JSX.Element {
  const { terms } = viewMessages.value
  const open = (rules.value ?? []).filter(({ canOverride, hasCredit }) => canOverride || hasCredit)
  return (
    <section class="panel" aria-label={terms.title}>
      <div class="panel-head">
        <h2>{terms.title}</h2>
      </div>
      {overrides.length === 0 ? (
        <p class="empty">{open.length === 0 ? terms.notYet : terms.none}</p>
      ) : (
        <OverrideTable overrides={overrides} act={act} />
      )}
      {act && <TermsByName rules={open.filter(({ by }) => by.length === 1)} act={act} />}
    </section>
  )
}

function OverrideTable({ overrides, act }: TermsPanelProps): JSX.Element {
  const { columns, terms } = viewMessages.value
  return (
    <ListedCallers
      kind="blocks overrides"
      rows={overrides}
      columns={[
        { title: terms.limit, text: ({ limit }) => limit },
        { title: columns.until, text: ({ until }) => (until === undefined ? terms.endless : formatMoment(until)) },
        { title: terms.reason, text: ({ reason, setBy }) => [reason, setBy].filter(Boolean).join(' · ') },
      ]}
      action={
        act && {
          title: terms.remove,
          onAct: ({ id, key }) => act(api.removeOverride(id), terms.removed(nameOf(key))),
        }
      }
    />
  )
}

function TermsByName({ rules: choice, act }: { rules: readonly Rule[]; act: Act }): JSX.Element | null {
  const { terms } = viewMessages.value
  const [chosen, setChosen] = useState('')
  const [key, setKey] = useState('')
  const rule = choice.find(({ id }) => id === chosen) ?? choice[0]
  if (rule === undefined) return null
  return (
    <>
      <div class="actions block-form">
        <NamedCallerFields
          rules={choice}
          rule={rule}
          value={key}
          label={terms.value}
          onRule={setChosen}
          onValue={setKey}
        />
      </div>
      <TermsForms rule={rule} caller={{ rule: rule.id, key: key.trim() }} name={key.trim()} act={act} />
    </>
  )
}

interface TermsDialogProps {
  readonly caller: Caller
  readonly act: Act
  readonly onBack: () => void
}

/** Shows the limit and the credit of one caller. */
export function TermsDialog({ caller, act, onBack }: TermsDialogProps): JSX.Element | null {
  const { callers: texts, terms } = viewMessages.value
  const rule = rules.value?.find(({ id }) => id === caller.rule)
  const { answer } = useAnswer(() => api.explainCaller(caller.id), [caller.id])
  const met = answer?.rules.find(one => one.rule === caller.rule)
  if (rule === undefined) return null
  const actAndClose: Act = (action, sentence) => {
    act(action, sentence)
    onBack()
  }
  const named = { rule: rule.id, caller: caller.id }
  return (
    <Sheet title={terms.of(nameOf(caller.key))} onBack={onBack}>
      {met?.limitFrom !== undefined && <p>{terms.current(met.limitFrom)}</p>}
      {met?.credit !== undefined && <p>{terms.credit(formatNumber(met.credit))}</p>}
      <TermsForms rule={rule} caller={named} name={nameOf(caller.key)} act={actAndClose} />
      <div class="actions">
        <button type="button" class="quiet" onClick={onBack}>
          {texts.cancel}
        </button>
      </div>
    </Sheet>
  )
}

interface FormProps {
  readonly caller: NamedCaller
  readonly name: string
  readonly act: Act
}

function TermsForms({ rule, ...rest }: FormProps & { readonly rule: Rule }): JSX.Element {
  return (
    <>
      {rule.canOverride && <LimitForm {...rest} />}
      {rule.hasCredit && <CreditForm {...rest} />}
    </>
  )
}

function LimitForm({ caller, name, act }: FormProps): JSX.Element {
  const { terms } = viewMessages.value
  const [limit, setLimit] = useState('')
  const [until, setUntil] = useState('')
  const [reason, setReason] = useState('')
  const isReady = name !== '' && limit.trim() !== ''
  return (
    <form
      class="actions block-form"
      onSubmit={event => {
        event.preventDefault()
        if (!isReady) return
        const moment = until === '' ? undefined : new Date(until).getTime()
        act(api.setOverride(caller, limit.trim(), moment, reason.trim()), terms.isSet(name, limit.trim()))
      }}
    >
      <label title={terms.limitExample}>
        {terms.limit}{' '}
        <input
          value={limit}
          size={10}
          placeholder="5000/h"
          spellcheck={false}
          autocapitalize="off"
          onInput={event => setLimit(event.currentTarget.value)}
        />
      </label>
      <label title={terms.untilMeans}>
        {terms.until}{' '}
        <input type="datetime-local" value={until} onInput={event => setUntil(event.currentTarget.value)} />
      </label>
      <label>
        {terms.reason} <input value={reason} maxLength={512} onInput={event => setReason(event.currentTarget.value)} />
      </label>
      <button type="submit" disabled={!isReady}>
        {terms.set}
      </button>
    </form>
  )
}

function CreditForm({ caller, name, act }: FormProps): JSX.Element {
  const { terms } = viewMessages.value
  const [permits, setPermits] = useState('')
  const isReady = name !== '' && Number(permits) > 0
  return (
    <form
      class="actions block-form"
      onSubmit={event => {
        event.preventDefault()
        if (!isReady) return
        let credit = 0
        const granting = api.grant(caller, Number(permits)).then(granted => {
          credit = granted.credit
        })
        act(granting, () => terms.granted(name, formatNumber(credit)))
        setPermits('')
      }}
    >
      <label title={terms.permitsMean}>
        {terms.permits}{' '}
        <input
          type="number"
          min={1}
          step={1}
          value={permits}
          placeholder="500"
          onInput={event => setPermits(event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={!isReady}>
        {terms.grant}
      </button>
    </form>
  )
}
