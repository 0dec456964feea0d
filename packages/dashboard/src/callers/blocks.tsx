import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Block, Caller } from '../api/types.ts'
import { rules } from '../figures/live.ts'
import { formatMoment } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { KeyText, makeVisible } from '../parts/key-text.tsx'
import { Sheet } from '../parts/sheet.tsx'

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

/** Who is blocked, by rules and by hand, and a way to block a caller by name. */
export function BlockPanel({ blocks, onLift, onBlock }: BlockPanelProps): JSX.Element {
  const { callers: texts } = viewMessages.value
  const blocking = (rules.value ?? []).filter(({ canBlock, by }) => canBlock === true && by.length === 1)
  return (
    <section class="panel" aria-label={texts.blocks}>
      <div class="panel-head">
        <h2>{texts.blocks}</h2>
      </div>
      {blocks.length === 0 ? <p class="empty">{texts.noBlocks}</p> : <BlockTable blocks={blocks} onLift={onLift} />}
      {onBlock && blocking.length > 0 && <BlockForm rules={blocking.map(({ id }) => id)} onBlock={onBlock} />}
      {rules.value?.every(({ canBlock }) => canBlock === false) && <p class="hush">{texts.noRuleBlocks}</p>}
    </section>
  )
}

interface BlockFormProps {
  readonly rules: readonly string[]
  readonly onBlock: (rule: string, key: string, period: string) => void
}

function BlockForm({ rules: ids, onBlock }: BlockFormProps): JSX.Element {
  const { callers: texts, columns } = viewMessages.value
  const [rule, setRule] = useState(ids[0]!)
  const [key, setKey] = useState('')
  const [period, setPeriod] = useState(USUAL)
  const by = rules.value?.find(({ id }) => id === rule)?.by[0] ?? ''
  return (
    <form
      class="actions block-form"
      onSubmit={event => {
        event.preventDefault()
        if (key.trim() === '') return
        onBlock(rule, key.trim(), period)
        setKey('')
      }}
    >
      <label>
        {columns.rule}{' '}
        <select value={rule} onChange={event => setRule(event.currentTarget.value)}>
          {ids.map(id => (
            <option key={id}>{id}</option>
          ))}
        </select>
      </label>
      <label>
        {by}{' '}
        <input
          value={key}
          aria-label={texts.blockWhom(by)}
          spellcheck={false}
          autocapitalize="off"
          onInput={event => setKey(event.currentTarget.value)}
        />
      </label>
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
    <table class="plain blocks">
      <thead>
        <tr>
          <th scope="col">{columns.key}</th>
          <th scope="col">{columns.rule}</th>
          <th scope="col">{columns.since}</th>
          <th scope="col">{columns.until}</th>
          {onLift && <th scope="col">{columns.action}</th>}
        </tr>
      </thead>
      <tbody>
        {blocks.map(block => (
          <tr key={block.id}>
            <td>
              <KeyText text={block.key} />
            </td>
            <td>{block.rule}</td>
            <td>{block.since === undefined ? '' : formatMoment(block.since)}</td>
            <td>{formatMoment(block.until)}</td>
            {onLift && (
              <td>
                <button type="button" class="quiet" onClick={() => onLift(block)}>
                  {texts.lift}
                </button>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** A caller's name as it fits into a sentence. */
export function nameOf(key: string): string {
  return makeVisible(key).slice(0, 60)
}
