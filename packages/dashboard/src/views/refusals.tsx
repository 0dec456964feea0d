import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api, type ListedRefusal } from '../api/api.ts'
import type { RefusedCall } from '../api/generated.ts'
import { useHeldOrder } from '../callers/held-order.ts'
import { rules, second } from '../figures/live.ts'
import { formatDuration, formatMoment, formatNumber } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { Answered, useAnswer } from '../parts/answer.tsx'
import { KeyText } from '../parts/key-text.tsx'
import { type Column, LongTable } from '../parts/long-table.tsx'
import { isNarrow } from '../parts/narrow.ts'
import { goTo, hashOf, route } from '../route.ts'
import { limitText } from '../rules/limit-text.ts'
import { RuleChoice } from '../rules/rule-choice.tsx'

const REFRESH_SECONDS = 2
const TOP = 500

/** Shows the last refused calls: rule, caller, path, and the condition under which each would have passed. */
export function Refusals(): JSX.Element {
  const { refusals: texts, callers: names, views } = viewMessages.value
  const [unmask, setUnmask] = useState(false)
  const [search, setSearch] = useState('')
  const rule = route.value.rest[0] ?? ''
  const turn = Math.floor(second.value / REFRESH_SECONDS)
  const question = { unmask, search: search.trim(), rule, top: TOP }
  const asked = useAnswer(() => api.refusals(question), [JSON.stringify(question), turn])
  const held = useHeldOrder(asked.answer ?? [], JSON.stringify(question))
  return (
    <>
      <p class="intro">{texts.intro}</p>
      <div class="actions filters">
        <input
          type="search"
          placeholder={texts.search}
          aria-label={texts.search}
          value={search}
          onInput={event => setSearch(event.currentTarget.value)}
        />
        <RuleChoice
          rules={rules.value ?? []}
          chosen={rule}
          onChoose={id => goTo('refusals', ...(id === '' ? [] : [id]))}
        />
        <button type="button" aria-pressed={unmask} onClick={() => setUnmask(!unmask)}>
          {unmask ? names.mask : names.unmask}
        </button>
      </div>
      <section class="panel" aria-label={views.refusals} {...held.handlers}>
        <Answered asked={asked}>
          {() => (held.rows.length === 0 ? <p class="empty">{texts.none}</p> : <RefusalTable refusals={held.rows} />)}
        </Answered>
      </section>
    </>
  )
}

function RefusalTable({ refusals }: { refusals: readonly ListedRefusal[] }): JSX.Element {
  const { refusals: texts, columns: titles, callers, views } = viewMessages.value
  const columns: Column[] = [
    { name: 'at', title: titles.at },
    { name: 'call', title: titles.call },
    { name: 'rule', title: titles.rule },
    { name: 'caller', title: titles.key },
    { name: 'passed', title: texts.wouldPass },
    { name: 'action', title: titles.action },
  ]
  return (
    <LongTable
      label={views.refusals}
      kind="refusals"
      columns={columns}
      rows={refusals}
      rowHeight={isNarrow.value ? 176 : 66}
      keyOf={({ id }) => id}
      cells={refusal => [
        <span class="two-lines" key="at">
          <span>{formatMoment(refusal.at)}</span>
          {refusal.unsaid > 0 && <small>{texts.unsaid(formatNumber(refusal.unsaid))}</small>}
        </span>,
        <code key="call" class="clipped" title={refusal.path}>
          {refusal.method} {refusal.path}
        </code>,
        <span class="two-lines" key="rule">
          {refusal.rule === '' ? (
            <span>{texts.noRule}</span>
          ) : (
            <a href={hashOf('rules', refusal.rule)}>{refusal.rule}</a>
          )}
          <small>{texts.reasons[refusal.reason as keyof typeof texts.reasons] ?? refusal.reason}</small>
        </span>,
        <span class="clipped" key="caller">
          {refusal.rule === '' ? '' : <KeyText text={refusal.key} />}
        </span>,
        <span class="two-lines" key="passed">
          <span>{passText(refusal)}</span>
          {refusal.limit !== undefined && <small>{numbersText(refusal)}</small>}
        </span>,
        refusal.rule === '' ? (
          ''
        ) : (
          <a class="button quiet" key="why" href={hashOf('explain', 'caller', refusal.caller)}>
            {callers.why}
          </a>
        ),
      ]}
    />
  )
}

/** Writes the condition under which the call would have passed. */
function passText({ retryAfterMs, limit, remaining, periodMs = 0 }: RefusedCall): string {
  const { refusals: texts } = viewMessages.value
  const later = retryAfterMs === null || retryAfterMs === 0 ? '' : texts.later(formatDuration(retryAfterMs))
  if (limit === undefined || remaining === undefined || remaining >= 1) return later
  const more = limitText({ limits: [{ count: limit + 1, periodMs }] })
  return later === '' ? texts.withLimit(more) : texts.laterOr(formatDuration(retryAfterMs!), more)
}

function numbersText({ limit = 0, remaining = 0, periodMs = 0 }: RefusedCall): string {
  return viewMessages.value.explain.left(formatNumber(remaining), limitText({ limits: [{ count: limit, periodMs }] }))
}
