import type { JSX } from 'preact'
import type { Outage, SourceStatus, Status, StoreStatus } from '../api/types.ts'
import { connection, second, status } from '../figures/live.ts'
import { shortName } from '../parts/short-name.ts'
import { formatDuration, formatMoment, formatNumber } from '../words/format.ts'
import { words } from '../words/index.ts'

/** Who counts where, who is degraded, since when and why; and where the rules come from. */
export function Fleet(): JSX.Element {
  const { loading } = words.value
  const told = status.value
  if (told === undefined) return <p class="hush">{connection.value === 'lost' ? '' : loading}</p>
  return (
    <>
      <Store store={told.store} />
      <Sources sources={told.sources} />
      <Gateway status={told} />
    </>
  )
}

function Store({ store }: { store: StoreStatus | undefined }): JSX.Element {
  const { fleet: told } = words.value
  if (store === undefined) {
    return (
      <section class="panel" aria-label={told.store}>
        <div class="panel-head">
          <h2>{told.store}</h2>
        </div>
        <p class="empty">{told.noStore}</p>
      </section>
    )
  }
  const facts: [string, string | undefined][] = [
    [told.since, store.since === undefined ? undefined : sinceText(store.since)],
    [told.why, store.healthy ? undefined : store.trouble],
    [told.affected, store.healthy ? undefined : store.rules?.join(', ')],
    [told.size, store.fleet?.size === undefined ? undefined : formatNumber(store.fleet.size)],
  ]
  return (
    <section class={`panel store ${store.healthy ? 'well' : 'ill'}`} aria-label={told.store}>
      <div class="panel-head">
        <h2>{told.store}</h2>
      </div>
      <p class="verdict" data-healthy={store.healthy}>
        {store.healthy ? told.healthy : told.degraded}
      </p>
      <Facts facts={facts} />
      {store.outages && <h3>{told.history}</h3>}
      {store.outages && <History outages={store.outages} />}
    </section>
  )
}

function History({ outages }: { outages: readonly Outage[] }): JSX.Element {
  const { fleet: told } = words.value
  if (outages.length === 0) return <p class="empty">{told.noHistory}</p>
  return (
    <ol class="history">
      {outages
        .toSorted((a, b) => b.since - a.since)
        .map(({ since, until, trouble, calls, over }) => (
          <li key={since} class={until === undefined ? 'open' : ''}>
            <time dateTime={new Date(since).toISOString()}>{formatMoment(since)}</time>{' '}
            <b>{until === undefined ? told.stillGoing : told.lasted(formatDuration(until - since))}</b>{' '}
            <span>{trouble}</span>
            {calls !== undefined && <small>{told.cost(formatNumber(calls), formatNumber(over ?? 0))}</small>}
          </li>
        ))}
    </ol>
  )
}

function Sources({ sources }: { sources: readonly SourceStatus[] }): JSX.Element {
  const { fleet: told } = words.value
  return (
    <section class="panel" aria-label={told.sources}>
      <div class="panel-head">
        <h2>{told.sources}</h2>
      </div>
      <ul class="sources">
        {sources.map(source => (
          <li key={source.name} class={source.trouble === undefined ? 'well' : 'ill'}>
            <b title={source.name}>{shortName(source.name)}</b>
            <span>
              {source.version !== undefined && `${told.version} ${String(source.version).slice(0, 12)}`}
              {source.takenAt !== undefined && ` · ${formatMoment(source.takenAt)}`}
              {source.fromSnapshot && ` · ${told.snapshot}`}
            </span>
            <span class="trouble">{source.trouble ?? told.fine}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Gateway({ status }: { status: Status }): JSX.Element {
  const { fleet: told } = words.value
  const { version, startedAt, processes, keys, maxKeys, overflowing } = status
  const facts: [string, string | undefined][] = [
    [told.release, version],
    [told.uptime, formatDuration(Math.max(0, second.value * 1000 - startedAt))],
    [told.processes, formatNumber(processes)],
    [told.keys, told.keysOf(formatNumber(keys), formatNumber(maxKeys))],
  ]
  return (
    <section class="panel" aria-label={told.gateway}>
      <div class="panel-head">
        <h2>{told.gateway}</h2>
      </div>
      <Facts facts={facts} />
      {overflowing.length > 0 && (
        <p class="notice degraded">
          {told.overflowing} {overflowing.join(', ')}
        </p>
      )}
    </section>
  )
}

function Facts({ facts }: { facts: readonly (readonly [string, string | undefined])[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts
        .filter(([, text]) => text !== undefined && text !== '')
        .map(([title, text]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{text}</dd>
          </div>
        ))}
    </dl>
  )
}

function sinceText(since: number): string {
  const lasts = second.value * 1000 - since
  return lasts < 1000 ? formatMoment(since) : `${formatMoment(since)} (${formatDuration(lasts)})`
}
