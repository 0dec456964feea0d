import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { Counts, History } from '../api/generated.ts'
import { Load } from '../charts/moon.tsx'
import { Sparkline } from '../charts/sparkline.tsx'
import { loadOf, ringOf, rules, second } from '../figures/live.ts'
import { COUNTS, type Count, SECONDS } from '../figures/ring.ts'
import { formatNumber, formatShort } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { type Column, LongTable } from '../parts/long-table.tsx'
import { isNarrow } from '../parts/narrow.ts'
import type { ShownTime } from './shown-time.ts'

/** Rows are put in order this rarely, so that they can be read. */
const ORDER_SECONDS = 5

interface ByRuleProps {
  readonly chosen: string | undefined
  readonly time: ShownTime
  readonly history: History | undefined
  readonly onChoose: (rule: string) => void
}

/** Shows the counts of each rule in the time that is shown, most refused first. */
export function ByRule({ chosen, time, history, onChoose }: ByRuleProps): JSX.Element {
  const { now: texts, columns: titles, counts, time: times } = messages.value
  const [wanted, setWanted] = useState('')
  const isHeld = useRef(false)
  const live = useStableOrder(isHeld, time.isLive)
  const past = new Map(time.isLive ? [] : history?.rules.map(rule => [rule.id, rule]))
  const all = time.isLive ? live : [...past.keys()].sort((a, b) => weightOf(past.get(b)!) - weightOf(past.get(a)!))
  const rows = all.filter(id => id.toLowerCase().includes(wanted.trim().toLowerCase()))
  const columns: Column[] = [
    { name: 'rule', title: titles.rule },
    { name: 'load', title: titles.load },
    ...COUNTS.map(name => ({ name, title: counts[name], numeric: true })),
    { name: 'trend', title: titles.trend },
  ]
  const hold = (held: boolean) => () => {
    isHeld.current = held
  }
  return (
    <section
      class="panel"
      aria-label={texts.perRule}
      onPointerEnter={hold(true)}
      onPointerLeave={hold(false)}
      onFocusCapture={hold(true)}
      onBlurCapture={hold(false)}
    >
      <div class="panel-head">
        <h2>{texts.perRule}</h2>
        <p class="hush">{texts.rows(formatNumber(rows.length), formatNumber(all.length))}</p>
        <input
          type="search"
          placeholder={texts.filter}
          aria-label={texts.filter}
          value={wanted}
          onInput={event => setWanted(event.currentTarget.value)}
        />
      </div>
      {rows.length === 0 ? (
        <p class="empty">{texts.none}</p>
      ) : (
        <LongTable
          label={texts.perRule}
          kind="by-rule"
          columns={columns}
          rows={rows}
          rowHeight={isNarrow.value ? 112 : 52}
          keyOf={id => id}
          isChosen={id => id === chosen}
          cells={id => [
            <button type="button" class="name" key="name" aria-pressed={id === chosen} onClick={() => onChoose(id)}>
              {id}
            </button>,
            <Load key="load" share={second.value === 0 ? undefined : loadOf(id)} />,
            ...COUNTS.map(name => {
              const rule = past.get(id)
              if (time.isLive || rule === undefined) return <LiveRate key={name} rule={id} name={name} />
              const before = time.compares ? times.wasBefore(formatShort(rule.before[name])) : ''
              return (
                <Rate key={name} name={name} large={rule[name]} small={before} title={texts.before} sum={rule[name]} />
              )
            }),
            <Sparkline key="trend" rule={id} />,
          ]}
        />
      )}
    </section>
  )
}

function LiveRate({ rule, name }: { rule: string; name: Count }): JSX.Element {
  const ring = ringOf(rule)
  const rate = ring?.at(second.value, name) ?? 0
  const sum = ring?.sum(second.value, SECONDS, name) ?? 0
  return <Rate name={name} large={rate} small={formatShort(sum)} title={messages.value.time.ranges['5m']} sum={sum} />
}

interface RateProps {
  readonly name: Count
  readonly large: number
  readonly small: string
  readonly title: string
  readonly sum: number
}

function Rate({ name, large, small, title, sum }: RateProps): JSX.Element {
  return (
    <span class={`rate ${name} ${sum === 0 ? 'nil' : ''}`}>
      <b data-large={name}>{formatShort(large)}</b>
      <small data-count={name} title={title}>
        {small}
      </small>
    </span>
  )
}

function weightOf({ refused, shadowRefused, allowed }: Counts): number {
  return refused * 1e9 + shadowRefused * 1e4 + allowed
}

/** Returns the rules that had a call lately, most refused first; they keep their places while the pointer or the focus is on one. */
function useStableOrder(isHeld: { readonly current: boolean }, isWanted: boolean): readonly string[] {
  const kept = useRef<{ readonly ids: readonly string[]; readonly at: number }>({ ids: [], at: 0 })
  if (!isWanted) return []
  const now = second.value
  const seen = knownRules().filter(id => COUNTS.some(name => (ringOf(id)?.sum(now, SECONDS, name) ?? 0) > 0))
  const isDue = now - kept.current.at >= ORDER_SECONDS && !isHeld.current
  if (isDue || seen.length !== kept.current.ids.length) {
    const lastMinute = (id: string, name: Count) => ringOf(id)!.sum(now, 60, name)
    const weigh = (id: string) =>
      weightOf(Object.fromEntries(COUNTS.map(name => [name, lastMinute(id, name)])) as unknown as Counts)
    const weights = new Map(seen.map(id => [id, weigh(id)]))
    kept.current = { ids: seen.sort((a, b) => weights.get(b)! - weights.get(a)! || (a < b ? -1 : 1)), at: now }
  }
  return kept.current.ids
}

/** Returns the names that figures may have: each rule, and the trial of a rule. */
function knownRules(): string[] {
  return (rules.value ?? []).flatMap(({ id }) => {
    const trial = `${id}~trial`
    return ringOf(trial) === undefined ? [id] : [id, trial]
  })
}
