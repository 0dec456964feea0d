import type { JSX } from 'preact'
import type { Rule } from '../api/generated.ts'
import { Load } from '../charts/moon.tsx'
import { Sparkline } from '../charts/sparkline.tsx'
import { loadOf, ringOf, second } from '../figures/live.ts'
import { SECONDS } from '../figures/ring.ts'
import { formatShort } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { type Column, LongTable } from '../parts/long-table.tsx'
import { isNarrow } from '../parts/narrow.ts'
import { shortName } from '../parts/short-name.ts'
import { goWithin, setQuery } from '../route.ts'
import { byText, limitText } from './limit-text.ts'
import { nextSort, SORTS, type Sort, type SortName } from './sort-order.ts'
import { callsOf, refusedOf, settledCosts } from './sort-rules.ts'

interface RuleTableProps {
  readonly rows: readonly Rule[]
  readonly sort: Sort | undefined
  /** The id of the rule whose details are open. */
  readonly chosen: string | undefined
  /** The handlers of the rows, which stay in their places while a pointer is on them. */
  readonly handlers: Readonly<Record<string, () => void>>
}

/** Shows all rules, sorted by a click on a column. */
export function RuleTable({ rows, sort, chosen, handlers }: RuleTableProps): JSX.Element {
  const { columns: titles, rules: texts, views } = viewMessages.value
  const isLive = second.value > 0
  const costs = settledCosts()
  const sortable = (by: SortName): Pick<Column, 'sort'> => ({
    // a phone shows no columns: it has a choice instead
    sort: isNarrow.value
      ? undefined
      : {
          direction: sort?.by === by ? sort.direction : undefined,
          onSort: () => setQuery('sort', nextSort(sort, by)),
        },
  })
  const cost: Column = { name: 'cost', title: texts.cost, numeric: true, ...sortable('cost') }
  const columns: Column[] = [
    { name: 'rule', title: titles.rule, ...sortable('name') },
    { name: 'limit', title: titles.limit },
    { name: 'load', title: titles.load, ...sortable('load') },
    { name: 'calls', title: texts.calls, numeric: true, ...sortable('calls') },
    { name: 'refused', title: texts.refused, numeric: true, ...sortable('refused') },
    ...(costs.size > 0 ? [cost] : []),
    { name: 'trend', title: titles.trend },
    { name: 'state', title: titles.state },
    { name: 'origin', title: titles.origin },
  ]
  return (
    <LongTable
      label={views.rules}
      kind={costs.size > 0 ? 'all-rules with-costs' : 'all-rules'}
      columns={columns}
      rows={rows}
      rowHeight={isNarrow.value ? 190 : 60}
      keyOf={({ id }) => id}
      isChosen={({ id }) => id === chosen}
      handlers={handlers}
      cells={rule => [
        <button type="button" class="name" key="name" onClick={() => goWithin(rule.id)}>
          {rule.id}
        </button>,
        <Limit key="limit" rule={rule} />,
        <Load key="load" withBar share={isLive ? loadOf(rule.id) : undefined} />,
        formatShort(callsOf(rule.id)),
        formatShort(refusedOf(rule.id)),
        ...(costs.size > 0 ? [costs.has(rule.id) ? formatShort(costs.get(rule.id)!) : ''] : []),
        <Sparkline key="trend" rule={rule.id} />,
        <State key="state" rule={rule} />,
        <Origin key="origin" rule={rule} />,
      ]}
    />
  )
}

/** Shows a choice of the order of rules, for tables that have no columns to click on. */
export function SortChoice({ sort }: { readonly sort: Sort | undefined }): JSX.Element {
  const { columns: titles, rules: texts } = viewMessages.value
  const names: Record<SortName, string> = {
    name: titles.rule,
    load: titles.load,
    calls: texts.calls,
    refused: texts.refused,
    cost: texts.cost,
  }
  const known = settledCosts().size > 0 ? SORTS : SORTS.filter(name => name !== 'cost')
  const value = sort === undefined ? '' : sort.direction === 'descending' ? `-${sort.by}` : sort.by
  return (
    <select aria-label={texts.sort} value={value} onChange={event => setQuery('sort', event.currentTarget.value)}>
      <option value="">{texts.sortNone}</option>
      {known.flatMap(name =>
        ['', '-'].map(sign => (
          <option key={sign + name} value={sign + name}>
            {names[name]} {sign === '' ? '↑' : '↓'}
          </option>
        )),
      )}
    </select>
  )
}

function Limit({ rule }: { rule: Rule }): JSX.Element {
  return (
    <span class="two-lines">
      <span>{limitText(rule)}</span>
      <small>
        {byText(rule)} · {rule.algorithm}
      </small>
    </span>
  )
}

/** Returns true if a trial of a rule has had calls in the last minutes. */
function isTried(rule: string): boolean {
  return (ringOf(`${rule}~trial`)?.sum(second.value, SECONDS, 'allowed') ?? 0) > 0
}

function State({ rule }: { rule: Rule }): JSX.Element {
  const { states } = viewMessages.value.rules
  return (
    <span class="states">
      <span class={`badge ${rule.state}`}>{states[rule.state]}</span>
      {isTried(rule.id) && <span class="badge trial">{states.trial}</span>}
    </span>
  )
}

function Origin({ rule }: { rule: Rule }): JSX.Element {
  const { local, remote } = viewMessages.value.rules
  return (
    <span class="two-lines">
      <span>{rule.where === 'remote' ? remote : local}</span>
      <small title={rule.origin}>{shortName(rule.origin ?? '')}</small>
    </span>
  )
}
