import type { JSX } from 'preact'
import type { GatewayProcess } from '../api/generated.ts'
import { Trend } from '../charts/trend.tsx'
import { second } from '../figures/live.ts'
import { formatBytes, formatDuration, formatLatency, formatNumber, formatPercent, formatShare } from '../i18n/format.ts'
import { serviceTexts } from '../i18n/services/index.ts'
import { type Column, LongTable } from '../parts/long-table.tsx'
import { isNarrow } from '../parts/narrow.ts'

/** Shows the load of each process of the gateway. */
export function ProcessTable({ processes }: { processes: readonly GatewayProcess[] }): JSX.Element {
  const texts = serviceTexts.value
  const numeric = new Set(['cpu', 'connections', 'calls'])
  const ofCallers = new Set(['connections', 'calls', 'rejected'])
  // a limiter in an application of its users serves no calls itself
  const hasCallers = processes.some(({ callers }) => callers !== undefined)
  const columns: Column[] = Object.entries(texts.processColumns)
    .filter(([name]) => hasCallers || !ofCallers.has(name))
    .map(([name, title]) => ({ name, title, numeric: numeric.has(name) }))
  return (
    <LongTable
      label={texts.gateway}
      kind={`processes ${hasCallers ? '' : 'alone'}`}
      columns={columns}
      rows={processes.map((one, index) => ({ ...one, name: texts.process(formatNumber(index + 1)) }))}
      rowHeight={isNarrow.value ? 310 : 84}
      keyOf={({ pid }) => String(pid)}
      cells={({ name, pid, startedAt, load, callers, history }) => [
        <span class="two-lines" key="process" data-pid={pid}>
          <b>{name}</b>
          <small>
            {texts.pid(String(pid))} · {formatDuration(Math.max(0, second.value * 1000 - startedAt))}
          </small>
        </span>,
        <span class="two-lines" key="loop">
          <span>{formatShare(load.utilization)}</span>
          <small>
            {formatLatency(load.delay.p50Ms)} / {formatLatency(load.delay.p99Ms)}
          </small>
        </span>,
        <span key="cpu">{formatShare(load.cpu)}</span>,
        <span class="two-lines" key="memory">
          <span>{formatBytes(load.rssBytes)}</span>
          <small>{texts.heap(formatBytes(load.heapUsedBytes), formatBytes(load.heapLimitBytes))}</small>
        </span>,
        ...(hasCallers
          ? [
              <span key="connections">{formatNumber(callers?.connections ?? 0)}</span>,
              <span key="calls">{formatNumber(callers?.inProgress ?? 0)}</span>,
              <Rejected key="rejected" counts={callers?.rejected ?? {}} />,
            ]
          : []),
        <Trend
          key="trend"
          label={texts.course(formatPercent(Math.max(0, ...history.utilization.map(share => share ?? 0))))}
          above={history.utilization}
          full={1}
        />,
      ]}
    />
  )
}

function Rejected({ counts }: { counts: Readonly<Record<string, number>> }): JSX.Element {
  const { reasons } = serviceTexts.value
  const nameOf = (reason: string) => (Object.hasOwn(reasons, reason) ? reasons[reason as keyof typeof reasons] : reason)
  const all = Object.entries(counts).sort(([, one], [, other]) => other - one)
  const text = all.map(([reason, count]) => `${nameOf(reason)}: ${formatNumber(count)}`).join(', ')
  return (
    <span class="clipped" title={text}>
      {text === '' ? formatNumber(0) : text}
    </span>
  )
}
