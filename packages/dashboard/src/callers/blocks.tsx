import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Block, Caller, Rule } from '../api/generated.ts'
import { rules } from '../figures/live.ts'
import { formatMoment } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { KeyText, makeVisible } from '../parts/key-text.tsx'
import { Sheet } from '../parts/sheet.tsx'
import { ListedCallers } from './listed-callers.tsx'
import { NamedCallerFields } from './named-caller.tsx'

const PERIODS = ['1m', '10m', '1h', '1d']
const USUAL = '10m'

function Period({ period, onChoose }: { period: string; onChoose: (period: string) => void }): JSX.Element {
  return (
    <select
      aria-label={viewMessages.value.callers.blockFor}
      value={period}
      onChange={event => onChoose(event.currentTarget.value)}
    >
      {PERIODS.map(one => (
        <option key={one}>{one}</option>
      ))}
    </select>
  )
}

interface BlockDialogProps {
  readonly caller: Caller
  readonly onBlock: (period: string) => void
  readonly onBack: () => void
}

/** Asks before a caller is blocked, and shows which caller, by which rule and for how long. */
export function BlockDialog({ caller, onBlock, onBack }: BlockDialogProps): JSX.Element {
  const { callers: texts } = viewMessages.value
  const [period, setPeriod] = useState(USUAL)
  return (
    <Sheet title={texts.blockTitle} onBack={onBack}>
      <p>
        <KeyText text={caller.key} /> · {caller.rule}
      </p>
      <p class="hush">{texts.blockMeans(caller.rule)}</p>
      <div class="actions">
        <span>{texts.blockFor}</span>
        <Period period={period} onChoose={setPeriod} />
        <button type="button" class="stern" onClick={() => onBlock(period)}>
          {texts.confirmBlock}
        </button>
        <button type="button" class="quiet" onClick={onBack}>
          {texts.cancel}
        </button>
      </div>
    </Sheet>
  )
}

interface BlockPanelProps {
  readonly blocks: readonly Block[]
  /** Undefined if this token may not change anything. */
  readonly onLift: ((block: Block) => void) | undefined
  readonly onBlock: ((rule: string, key: string, period: string) => void) | undefined
}

/** Shows the callers that are blocked, by rules and by hand, and a way to block a caller by name. */
export function BlockPanel({ blocks, onLift, onBlock }: BlockPanelProps): JSX.Element {
  const { callers: texts } = viewMessages.value
  const blocking = (rules.value ?? []).filter(({ canBlock, by }) => canBlock === true && by.length === 1)
  return (
    <section class="panel" aria-label={texts.blocks}>
      <div class="panel-head">
        <h2>{texts.blocks}</h2>
      </div>
      {blocks.length === 0 ? <p class="empty">{texts.noBlocks}</p> : <BlockTable blocks={blocks} onLift={onLift} />}
      {onBlock && blocking.length > 0 && <BlockForm rules={blocking} onBlock={onBlock} />}
      {rules.value?.every(({ canBlock }) => canBlock === false) && <p class="hush">{texts.noRuleBlocks}</p>}
    </section>
  )
}

interface BlockFormProps {
  readonly rules: readonly Rule[]
  readonly onBlock: (rule: string, key: string, period: string) => void
}

function BlockForm({ rules: choice, onBlock }: BlockFormProps): JSX.Element {
  const { callers: texts } = viewMessages.value
  const [chosen, setChosen] = useState('')
  const [key, setKey] = useState('')
  const [period, setPeriod] = useState(USUAL)
  const rule = choice.find(({ id }) => id === chosen) ?? choice[0]!
  return (
    <form
      class="actions block-form"
      onSubmit={event => {
        event.preventDefault()
        if (key.trim() === '') return
        onBlock(rule.id, key.trim(), period)
        setKey('')
      }}
    >
      <NamedCallerFields
        rules={choice}
        rule={rule}
        value={key}
        label={texts.blockWhom}
        onRule={setChosen}
        onValue={setKey}
      />
      <Period period={period} onChoose={setPeriod} />
      <button type="submit" class="stern" disabled={key.trim() === ''}>
        {texts.blockByName}
      </button>
    </form>
  )
}

function BlockTable({ blocks, onLift }: Pick<BlockPanelProps, 'blocks' | 'onLift'>): JSX.Element {
  const { columns, callers: texts } = viewMessages.value
  return (
    <ListedCallers
      kind="blocks"
      rows={blocks}
      columns={[
        { title: columns.since, text: ({ since }) => (since === undefined ? '' : formatMoment(since)) },
        { title: columns.until, text: ({ until }) => formatMoment(until) },
      ]}
      action={onLift && { title: texts.lift, onAct: onLift }}
    />
  )
}

/** Returns a caller's name as it fits into a sentence. */
export function nameOf(key: string): string {
  return makeVisible(key).slice(0, 60)
}
