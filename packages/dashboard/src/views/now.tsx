import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Chart } from '../charts/chart.tsx'
import { Load } from '../charts/moon.tsx'
import { Sparkline } from '../charts/sparkline.tsx'
import { connection, loadOf, ringOf, rules, second, total, waitingFor } from '../figures/live.ts'
import { COUNTS, type Count, type Ring, SECONDS } from '../figures/ring.ts'
import { formatNumber, formatShort } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { Costs } from '../parts/costs.tsx'
import { type Column, LongTable } from '../parts/long-table.tsx'
import { Mark } from '../parts/mark.tsx'
import { isNarrow } from '../parts/narrow.ts'
import { Overload } from '../parts/overload.tsx'
import { goTo, route } from '../route.ts'
import { knownRules } from '../rules/known-rules.ts'

/** Rows change places this seldom, so that one can read them. */
const SETTLE_SECONDS = 5

/** What Diana is doing at this moment, in all and by rule. */
export function Now(): JSX.Element {
  const [chosen] = route.value.rest
  const setChosen = (rule: string | undefined) => goTo('now', ...(rule === undefined ? [] : [rule]))
  const { now: told, loading, columns } = messages.value
  if (rules.value === undefined && connection.value !== 'lost') return <p class="hush">{loading}</p>
  const ring = chosen === undefined ? total : ringOf(chosen)
  return (
    <>
      <p class="headline">{headline()}</p>
      <Tiles ring={ring} rule={chosen} />
      <section class="panel" aria-label={told.chart}>
        <div class="panel-head">
          <h2>{chosen ?? told.chartTotal}</h2>
          <p class="hush">{told.chartNote}</p>
          {chosen !== undefined && (
            <button type="button" class="quiet" onClick={() => setChosen(undefined)}>
              {told.backToAll}
            </button>
          )}
        </div>
        <Chart rule={chosen} label={`${told.chart}: ${chosen ?? told.chartTotal}. ${headline()}`} />
        <ul class="legend">
          {COUNTS.map(name => (
            <li key={name} class={name}>
              <Mark of={name} />
              {messages.value.counts[name]}
            </li>
          ))}
        </ul>
      </section>
      <Overload wanted={chosen} />
      <Costs wanted={chosen} />
      <ByRule chosen={chosen} onChoose={rule => setChosen(rule === chosen ? undefined : rule)} label={columns.rule} />
    </>
  )
}

function headline(): string {
  const { now: told } = messages.value
  const passed = total.sum(second.value, 60, 'allowed')
  const refused = total.sum(second.value, 60, 'refused')
  if (passed + refused === 0) return told.quiet
  if (refused === 0) return told.calm(formatNumber(passed))
  return told.busy(formatNumber(passed), formatNumber(refused))
}

function Tiles({ ring, rule }: { ring: Ring | undefined; rule: string | undefined }): JSX.Element {
  const { counts, countsLong, perSecond, lastMinutes, now: told } = messages.value
  const waiting = waitingFor(rule)
  return (
    <dl class="tiles">
      {COUNTS.map(name => (
        <div key={name} class={`tile ${name}`}>
          <dt>
            <Mark of={name} />
            {counts[name]}
          </dt>
          <dd>
            <strong data-rate={name}>{formatShort(ring?.at(second.value, name) ?? 0)}</strong>{' '}
            <small>{perSecond}</small>
          </dd>
          <dd class="sum">
            <span data-sum={name}>{formatNumber(ring?.sum(second.value, SECONDS, name) ?? 0)}</span> · {lastMinutes}
          </dd>
          <dd class="hush">
            {name === 'waited' && waiting > 0 ? told.waiting(formatNumber(waiting)) : countsLong[name]}
          </dd>
        </div>
      ))}
    </dl>
  )
}

interface ByRuleProps {
  readonly chosen: string | undefined
  readonly onChoose: (rule: string) => void
  readonly label: string
}

function ByRule({ chosen, onChoose }: ByRuleProps): JSX.Element {
  const { now: told, columns: titles, counts } = messages.value
  const [wanted, setWanted] = useState('')
  const isHeld = useRef(false)
  const all = useSettledOrder(isHeld)
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
      aria-label={told.perRule}
      onPointerEnter={hold(true)}
      onPointerLeave={hold(false)}
      onFocusCapture={hold(true)}
      onBlurCapture={hold(false)}
    >
      <div class="panel-head">
        <h2>{told.perRule}</h2>
        <p class="hush">{told.rows(formatNumber(rows.length), formatNumber(all.length))}</p>
        <input
          type="search"
          placeholder={told.filter}
          aria-label={told.filter}
          value={wanted}
          onInput={event => setWanted(event.currentTarget.value)}
        />
      </div>
      {rows.length === 0 ? (
        <p class="empty">{told.none}</p>
      ) : (
        <LongTable
          label={told.perRule}
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
            ...COUNTS.map(name => <Rate key={name} rule={id} name={name} />),
            <Sparkline key="trend" rule={id} />,
          ]}
        />
      )}
    </section>
  )
}

function Rate({ rule, name }: { rule: string; name: Count }): JSX.Element {
  const ring = ringOf(rule)
  const rate = ring?.at(second.value, name) ?? 0
  const sum = ring?.sum(second.value, SECONDS, name) ?? 0
  return (
    <span class={`rate ${name} ${sum === 0 ? 'nil' : ''}`}>
      <b>{formatShort(rate)}</b>
      <small data-count={name} title={messages.value.lastMinutes}>
        {formatShort(sum)}
      </small>
    </span>
  )
}

/** The rules that saw a call lately, most refused first; they keep their places while somebody points at one. */
function useSettledOrder(isHeld: { readonly current: boolean }): readonly string[] {
  const kept = useRef<{ readonly ids: readonly string[]; readonly at: number }>({ ids: [], at: 0 })
  const now = second.value
  const seen = knownRules().filter(id => COUNTS.some(name => (ringOf(id)?.sum(now, SECONDS, name) ?? 0) > 0))
  const isStale = now - kept.current.at >= SETTLE_SECONDS && !isHeld.current
  if (isStale || seen.length !== kept.current.ids.length) {
    const weight = (id: string) => {
      const ring = ringOf(id)!
      return (
        ring.sum(now, 60, 'refused') * 1e9 + ring.sum(now, 60, 'shadowRefused') * 1e4 + ring.sum(now, 60, 'allowed')
      )
    }
    const weights = new Map(seen.map(id => [id, weight(id)]))
    kept.current = { ids: seen.sort((a, b) => weights.get(b)! - weights.get(a)! || (a < b ? -1 : 1)), at: now }
  }
  return kept.current.ids
}
