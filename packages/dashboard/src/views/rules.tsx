import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Rule } from '../api/types.ts'
import { Load } from '../charts/moon.tsx'
import { Sparkline } from '../charts/sparkline.tsx'
import { connection, loadOf, ringOf, rules, second } from '../figures/live.ts'
import { formatNumber } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { type Column, LongTable } from '../parts/long-table.tsx'
import { isNarrow } from '../parts/narrow.ts'
import { returnFocus } from '../parts/sheet.tsx'
import { shortName } from '../parts/short-name.ts'
import { goTo, route } from '../route.ts'
import { byText, limitText } from '../rules/limit-text.ts'
import { RuleDetails } from '../rules/rule-details.tsx'

/** Every rule: where it comes from, what it allows, how near its busiest caller is to that. */
export function Rules(): JSX.Element {
  const { rules: told, now, loading, columns: titles } = messages.value
  const [wanted, setWanted] = useState('')
  const all = rules.value
  if (all === undefined) return <p class="hush">{connection.value === 'lost' ? '' : loading}</p>
  const chosen = all.find(({ id }) => id === route.value.rest[0])
  const rows = all.filter(rule => isWanted(rule, wanted))
  const columns: Column[] = [
    { name: 'rule', title: titles.rule },
    { name: 'limit', title: titles.limit },
    { name: 'load', title: titles.load },
    { name: 'trend', title: titles.trend },
    { name: 'state', title: titles.state },
    { name: 'origin', title: titles.origin },
  ]
  return (
    <>
      <p class="intro">{told.intro}</p>
      {chosen && <RuleDetails key={chosen.id} rule={chosen} onClose={() => close(chosen.id)} />}
      <section class="panel" aria-label={titles.rule}>
        <div class="panel-head">
          <p class="hush">{now.rows(formatNumber(rows.length), formatNumber(all.length))}</p>
          <input
            type="search"
            placeholder={now.filter}
            aria-label={now.filter}
            value={wanted}
            onInput={event => setWanted(event.currentTarget.value)}
          />
        </div>
        {rows.length === 0 ? (
          <p class="empty">{all.length === 0 ? told.none : told.noMatch}</p>
        ) : (
          <LongTable
            label={messages.value.views.rules}
            kind="all-rules"
            columns={columns}
            rows={rows}
            rowHeight={isNarrow.value ? 160 : 60}
            keyOf={({ id }) => id}
            isChosen={({ id }) => id === chosen?.id}
            cells={rule => [
              <button type="button" class="name" key="name" onClick={() => goTo('rules', rule.id)}>
                {rule.id}
              </button>,
              <Limit key="limit" rule={rule} />,
              <Load key="load" withBar share={second.value === 0 ? undefined : loadOf(rule.id)} />,
              <Sparkline key="trend" rule={rule.id} />,
              <State key="state" rule={rule} />,
              <Origin key="origin" rule={rule} />,
            ]}
          />
        )}
      </section>
    </>
  )
}

/** The focus goes back to the row that the details were opened from. */
function close(id: string): void {
  goTo('rules')
  const rows = document.querySelectorAll<HTMLElement>('.all-rules .rows button.name')
  returnFocus([...rows].find(row => row.textContent === id) ?? null)
}

function isWanted(rule: Rule, wanted: string): boolean {
  const text = [rule.id, limitText(rule), rule.origin ?? '', rule.by.join(' ')].join(' ').toLowerCase()
  return text.includes(wanted.trim().toLowerCase())
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

function State({ rule }: { rule: Rule }): JSX.Element {
  const { states } = messages.value.rules
  return (
    <span class="states">
      <span class={`badge ${rule.state}`}>{states[rule.state]}</span>
      {ringOf(`${rule.id}~trial`) && <span class="badge trial">{states.trial}</span>}
    </span>
  )
}

function Origin({ rule }: { rule: Rule }): JSX.Element {
  const { local, remote } = messages.value.rules
  return (
    <span class="two-lines">
      <span>{rule.where === 'remote' ? remote : local}</span>
      <small title={rule.origin}>{shortName(rule.origin ?? '')}</small>
    </span>
  )
}
