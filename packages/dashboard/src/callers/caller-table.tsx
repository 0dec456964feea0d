import type { JSX } from 'preact'
import type { Caller } from '../api/generated.ts'
import { Load } from '../charts/moon.tsx'
import { Timeline } from '../charts/timeline.tsx'
import { rules } from '../figures/live.ts'
import { formatMoment, formatNumber, formatShort } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { KeyText } from '../parts/key-text.tsx'
import { type Column, LongTable } from '../parts/long-table.tsx'
import { isNarrow } from '../parts/narrow.ts'
import { hashOf } from '../route.ts'
import { limitText } from '../rules/limit-text.ts'

interface CallerTableProps {
  readonly callers: readonly Caller[]
  /** Undefined if the gateway or this token cannot. */
  readonly onBlock: ((caller: Caller) => void) | undefined
  readonly onReset: ((caller: Caller) => void) | undefined
  /** Opens the caller's limit and credit. */
  readonly onTerms: ((caller: Caller) => void) | undefined
}

/** Shows callers: their last calls, their distance from the limit, and the actions for each. */
export function CallerTable({ callers, onBlock, onReset, onTerms }: CallerTableProps): JSX.Element {
  const { columns: titles, callers: texts, views } = viewMessages.value
  const columns: Column[] = [
    { name: 'caller', title: titles.key },
    { name: 'rule', title: titles.rule },
    { name: 'used', title: titles.used },
    { name: 'calls', title: titles.calls, numeric: true },
    { name: 'refused', title: titles.refused, numeric: true },
    { name: 'trend', title: titles.tenMinutes },
    { name: 'seen', title: titles.seen },
    { name: 'action', title: titles.action },
  ]
  return (
    <LongTable
      label={views.callers}
      kind="callers"
      columns={columns}
      rows={callers}
      rowHeight={isNarrow.value ? 190 : 76}
      keyOf={({ id }) => id}
      cells={caller => [
        <span class="who" key="caller">
          <KeyText text={isOfAll(caller.rule) ? '' : caller.key} />
          {caller.blockedUntil !== undefined && (
            <small class="blocked">{texts.blockedUntil(formatMoment(caller.blockedUntil))}</small>
          )}
        </span>,
        <a key="rule" class="rule-name" href={hashOf('rules', caller.rule)}>
          {caller.rule}
        </a>,
        <Distance key="used" caller={caller} />,
        <Count key="calls" count={caller.calls ?? 0} error={caller.callsError ?? 0} sign="±" />,
        <span key="refused" data-refused>
          {caller.refusedError ? (
            <Count count={caller.refused} error={caller.refusedError + caller.error} sign="±" />
          ) : (
            <Count count={caller.refused} error={caller.error} sign="+≤" />
          )}
        </span>,
        <Timeline key="trend" timeline={caller.timeline} />,
        <span class="two-lines" key="seen">
          <span>{formatMoment(caller.lastAt)}</span>
          {caller.firstAt !== undefined && <small>{texts.firstSeen(formatMoment(caller.firstAt))}</small>}
        </span>,
        <span class="deeds" key="deeds">
          <a class="button quiet" href={hashOf('explain', 'caller', caller.id)}>
            {texts.why}
          </a>
          {onBlock && caller.canBlock && (
            <button type="button" class="stern" onClick={() => onBlock(caller)}>
              {texts.block}
            </button>
          )}
          {onTerms && hasTerms(caller.rule) && (
            <button type="button" class="quiet" onClick={() => onTerms(caller)}>
              {viewMessages.value.terms.open}
            </button>
          )}
          {onReset && (
            <button type="button" class="quiet" title={texts.resetMeans} onClick={() => onReset(caller)}>
              {texts.reset}
            </button>
          )}
        </span>,
      ]}
    />
  )
}

/** Returns true if callers of a rule can have a limit of their own, or credit. */
function hasTerms(rule: string): boolean {
  return rules.value?.some(({ id, canOverride, hasCredit }) => id === rule && (canOverride || hasCredit)) === true
}

function Distance({ caller }: { caller: Caller }): JSX.Element {
  const { limit, remaining, periodMs = 0 } = caller
  if (limit === undefined || remaining === undefined)
    return <span class="hush">{viewMessages.value.callers.unknownUse}</span>
  const share = limit > 0 ? Math.min(1, Math.max(0, 1 - remaining / limit)) : 1
  return (
    <span class="two-lines" data-remaining={remaining}>
      <Load share={share} withBar />
      <small>
        {viewMessages.value.explain.left(formatNumber(remaining), limitText({ limits: [{ count: limit, periodMs }] }))}
      </small>
    </span>
  )
}

function Count({ count, error, sign }: { count: number; error: number; sign: string }): JSX.Element {
  return (
    <span class="two-lines">
      <span>{formatShort(count)}</span>
      {error > 0 && (
        <small title={viewMessages.value.callers.errorMeans}>
          {sign}
          {formatShort(error)}
        </small>
      )}
    </span>
  )
}

/** Returns true if a rule counts all calls together, so that it has no callers. */
function isOfAll(rule: string): boolean {
  return rules.value?.find(({ id }) => id === rule)?.by.length === 0
}
