import type { JSX } from 'preact'
import type { ServiceAddress, ServiceFigures } from '../api/generated.ts'
import { Trend } from '../charts/trend.tsx'
import { formatDuration, formatLatency, formatNumber, formatPercent, formatRate } from '../i18n/format.ts'
import { serviceTexts } from '../i18n/services/index.ts'
import { type Column, LongTable } from '../parts/long-table.tsx'
import { isNarrow } from '../parts/narrow.ts'
import { errorShare, routeName, type ServiceRow } from './service-rows.ts'

/** Shows the state of each address, and the outcomes of its calls. */
export function ServiceTable({ rows }: { rows: readonly ServiceRow[] }): JSX.Element {
  const texts = serviceTexts.value
  const numeric = new Set(['pace', 'errors', 'retries', 'weight'])
  const columns: Column[] = Object.entries(texts.columns).map(([name, title]) => {
    return { name, title, numeric: numeric.has(name) }
  })
  return (
    <LongTable
      label={texts.addresses}
      kind="services"
      columns={columns}
      rows={rows}
      rowHeight={isNarrow.value ? 300 : 84}
      keyOf={({ id }) => id}
      classOf={({ address }) => (address === undefined ? 'whole' : '')}
      cells={row => [
        <Name key="service" row={row} />,
        <State key="state" row={row} />,
        <span key="pace">{row.figures === undefined ? '–' : formatRate(row.figures.perSecond)}</span>,
        <Errors key="errors" figures={row.figures} />,
        <Latency key="latency" figures={row.figures} />,
        <Calls key="calls" addresses={addressesOf(row)} />,
        <span key="retries">{row.figures === undefined ? '–' : formatNumber(row.figures.retries)}</span>,
        <Weight key="weight" address={row.address} />,
        <LastMinutes key="trend" figures={row.figures} />,
      ]}
    />
  )
}

function addressesOf({ route, address }: ServiceRow): readonly ServiceAddress[] {
  return address === undefined ? route.addresses : [address]
}

function Name({ row: { route, address } }: { row: ServiceRow }): JSX.Element {
  const texts = serviceTexts.value
  const name = routeName(route)
  const asked = route.headers.length > 0 ? ` ${texts.withHeaders(route.headers.join(', '))}` : ''
  if (address === undefined) {
    return (
      <span class="two-lines">
        <b title={name}>{name}</b>
        <small>{`${texts.all(formatNumber(route.addresses.length))}${asked}`}</small>
      </span>
    )
  }
  return (
    <span class="two-lines" data-address={address.address}>
      <span title={address.address}>{address.address}</span>
      <small title={name}>{`${name}${asked}`}</small>
    </span>
  )
}

function State({ row: { route, address } }: { row: ServiceRow }): JSX.Element {
  const texts = serviceTexts.value
  if (address === undefined) {
    const healthy = route.addresses.filter(({ state }) => state === 'healthy').length
    return <span>{texts.healthyOf(formatNumber(healthy), formatNumber(route.addresses.length))}</span>
  }
  const { state, forMs, why } = address
  return (
    <span class="two-lines">
      <span class="lasting">
        <b class={`badge ${state}`} data-state={state} title={texts.stateMeans[state]}>
          {texts.states[state]}
        </b>{' '}
        {forMs !== undefined && <small>{texts.lasts(formatDuration(forMs))}</small>}
      </span>
      {state !== 'healthy' && why !== undefined && <small title={why}>{why}</small>}
    </span>
  )
}

function Errors({ figures }: { figures: ServiceFigures | undefined }): JSX.Element {
  const share = errorShare(figures)
  if (share === undefined) return <span data-errors="">–</span>
  return (
    <span class={share > 0 ? 'failing' : ''} data-errors={share}>
      {formatPercent(share)}
    </span>
  )
}

function Latency({ figures }: { figures: ServiceFigures | undefined }): JSX.Element {
  const latency = figures?.latency
  if (latency === undefined) return <span data-p50="">–</span>
  const text = (ms: number | null) => (ms === null ? serviceTexts.value.beyond : formatLatency(ms))
  const { p50Ms, p95Ms, p99Ms } = latency
  return (
    <span data-p50={p50Ms ?? 'beyond'}>
      ≤ {text(p50Ms)} / {text(p95Ms)} / {text(p99Ms)}
    </span>
  )
}

function Calls({ addresses }: { addresses: readonly ServiceAddress[] }): JSX.Element {
  const texts = serviceTexts.value
  const sum = (name: 'connections' | 'underWay' | 'waiting') =>
    addresses.reduce((total, address) => total + address[name], 0)
  const waiting = sum('waiting')
  return (
    <span class="two-lines">
      <span>{texts.open(formatNumber(sum('connections')))}</span>
      <small>{texts.underWay(formatNumber(sum('underWay')))}</small>
      <small class={waiting > 0 ? 'failing' : ''}>{texts.waiting(formatNumber(waiting))}</small>
    </span>
  )
}

function Weight({ address }: { address: ServiceAddress | undefined }): JSX.Element {
  if (address === undefined) return <span />
  const { weight, share } = address
  return (
    <span class="two-lines">
      <span>{formatNumber(weight)}</span>
      {share < weight && <small>{serviceTexts.value.slowStart(formatRate(share))}</small>}
    </span>
  )
}

function LastMinutes({ figures }: { figures: ServiceFigures | undefined }): JSX.Element {
  if (figures === undefined) return <span class="hush">–</span>
  const { calls, errors } = figures.history
  const sum = (counts: readonly number[]) => formatNumber(counts.reduce((total, count) => total + count, 0))
  return <Trend label={serviceTexts.value.trend(sum(calls), sum(errors))} above={calls} below={errors} />
}
