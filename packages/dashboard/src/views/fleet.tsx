import type { JSX } from 'preact'
import { api } from '../api/api.ts'
import type { Change, Outage, RefusedChange, SourceStatus, Status, StoreStatus } from '../api/generated.ts'
import { connection, leasedRules, rules, second, status, storeCalls } from '../figures/live.ts'
import { formatDuration, formatMoment, formatNumber, formatRatio } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { FleetProcesses } from '../now/fleet-processes.tsx'
import { useAnswer } from '../parts/answer.tsx'
import { affectedText, causeText, outageText, remedyText } from '../parts/outage-texts.ts'
import { shortName } from '../parts/short-name.ts'

const MOST_RULES = 20
const AUDIT_SECONDS = 5

/** Shows the processes and where each counts, which of them are degraded, since when and why, and the sources of the rules. */
export function Fleet(): JSX.Element {
  const { loading } = viewMessages.value
  const current = status.value
  if (current === undefined) return <p class="hush">{connection.value === 'lost' ? '' : loading}</p>
  return (
    <>
      <Store store={current.store} />
      <FleetProcesses />
      <Sources sources={current.sources} />
      <Gateway status={current} />
      <Workers status={current} />
      <AuditLists />
    </>
  )
}

function Store({ store }: { store: StoreStatus | undefined }): JSX.Element {
  const { fleet: texts } = viewMessages.value
  if (store === undefined) {
    return (
      <section class="panel" aria-label={texts.store}>
        <div class="panel-head">
          <h2>{texts.store}</h2>
        </div>
        <p class="empty">{texts.noStore}</p>
      </section>
    )
  }
  const facts: [string, string | undefined][] = [
    [texts.since, store.since === undefined ? undefined : sinceText(store.since)],
    [texts.todo, store.healthy ? undefined : remedyText(store)],
    [texts.affected, store.healthy ? undefined : affectedText(store.rules, rules.value?.map(({ id }) => id) ?? [])],
    [texts.size, store.fleet?.size === undefined ? undefined : formatNumber(store.fleet.size)],
    [texts.perDecision, perDecisionText()],
  ]
  return (
    <section class={`panel store ${store.healthy ? 'well' : 'ill'}`} aria-label={texts.store}>
      <div class="panel-head">
        <h2>{texts.store}</h2>
      </div>
      <p class="verdict" data-healthy={store.healthy}>
        {store.healthy ? texts.healthy : outageText(store)}
      </p>
      <Facts facts={facts} />
      <Leases />
      {store.outages && <h3>{texts.history}</h3>}
      {store.outages && <History outages={store.outages} />}
    </section>
  )
}

/** Shows the share of each rule that the processes of this gateway hold in advance. */
function Leases(): JSX.Element | null {
  const { fleet: texts } = viewMessages.value
  // the figures are not signals by themselves: they are new each second
  const held = second.value > 0 ? leasedRules() : []
  const leases = storeCalls.newest?.leases
  if (leases === undefined) return null
  return (
    <>
      <h3>{texts.leases}</h3>
      {held.length === 0 ? (
        <p class="empty">{texts.noLeases}</p>
      ) : (
        <>
          <p class="hush">{texts.leased(formatNumber(leases.permits), formatNumber(leases.keys))}</p>
          <dl class="facts leases">
            {held.slice(0, MOST_RULES).map(([rule, permits]) => (
              <div key={rule} data-rule={rule}>
                <dt>{rule}</dt>
                <dd>{formatNumber(permits)}</dd>
              </div>
            ))}
          </dl>
          {held.length > MOST_RULES && <p class="hush">{texts.moreLeases(formatNumber(held.length - MOST_RULES))}</p>}
        </>
      )}
    </>
  )
}

function History({ outages }: { outages: readonly Outage[] }): JSX.Element {
  const { fleet: texts } = viewMessages.value
  if (outages.length === 0) return <p class="empty">{texts.noHistory}</p>
  return (
    <ol class="history">
      {outages
        .toSorted((a, b) => b.since - a.since)
        .map(({ since, until, code, what, calls, over }) => (
          <li key={since} class={until === undefined ? 'open' : ''}>
            <time dateTime={new Date(since).toISOString()}>{formatMoment(since)}</time>{' '}
            <b>{until === undefined ? texts.stillGoing : texts.lasted(formatDuration(until - since))}</b>{' '}
            <span>{causeText({ code, what })}</span>
            {calls !== undefined && <small>{texts.cost(formatNumber(calls), formatNumber(over ?? 0))}</small>}
          </li>
        ))}
    </ol>
  )
}

function Sources({ sources }: { sources: readonly SourceStatus[] }): JSX.Element {
  const { fleet: texts } = viewMessages.value
  return (
    <section class="panel" aria-label={texts.sources}>
      <div class="panel-head">
        <h2>{texts.sources}</h2>
      </div>
      <ul class="sources">
        {sources.map(source => (
          <li key={source.name} class={source.trouble === undefined ? 'well' : 'ill'}>
            <b title={source.name}>{shortName(source.name)}</b>
            <span>
              {source.version !== undefined && `${texts.version} ${String(source.version).slice(0, 12)}`}
              {source.takenAt !== undefined && ` · ${formatMoment(source.takenAt)}`}
              {source.fromSnapshot && ` · ${texts.snapshot}`}
            </span>
            <span class="trouble">{source.trouble ?? texts.fine}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Gateway({ status }: { status: Status }): JSX.Element {
  const { fleet: texts } = viewMessages.value
  const { version, startedAt, processes, keys, maxKeys, overflowing } = status
  const facts: [string, string | undefined][] = [
    [texts.release, version],
    [texts.uptime, formatDuration(Math.max(0, second.value * 1000 - startedAt))],
    [texts.processes, formatNumber(processes)],
    [texts.keys, texts.keysOf(formatNumber(keys), formatNumber(maxKeys))],
  ]
  return (
    <section class="panel" aria-label={texts.gateway}>
      <div class="panel-head">
        <h2>{texts.gateway}</h2>
      </div>
      <Facts facts={facts} />
      {overflowing.length > 0 && (
        <p class="notice degraded">
          {texts.overflowing} {overflowing.join(', ')}
        </p>
      )}
    </section>
  )
}

/** Shows each worker by itself. */
function Workers({ status }: { status: Status }): JSX.Element | null {
  const { fleet: texts, columns } = viewMessages.value
  if (status.workers === undefined) return null
  return (
    <section class="panel" aria-label={texts.workers}>
      <div class="panel-head">
        <h2>{texts.workers}</h2>
      </div>
      <table class="plain workers">
        <thead>
          <tr>
            <th scope="col">{texts.worker}</th>
            <th scope="col" class="numeric">
              {texts.keys}
            </th>
            <th scope="col">{columns.state}</th>
          </tr>
        </thead>
        <tbody>
          {status.workers.map(({ keys, store }, index) => (
            <tr key={index}>
              <td>{formatNumber(index + 1)}</td>
              <td class="numeric">{formatNumber(keys)}</td>
              <td>{store === undefined || store.healthy ? texts.fine : causeText(store)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** Shows the changes made through the admin API, the user of each, and refused ones. */
function AuditLists(): JSX.Element | null {
  const { fleet: texts } = viewMessages.value
  const { answer } = useAnswer(() => api.audit(), [Math.floor(second.value / AUDIT_SECONDS)])
  if (answer === undefined) return null
  const { changes, refused } = answer
  return (
    <section class="panel changes" aria-label={texts.changes}>
      <div class="panel-head">
        <h2>{texts.changes}</h2>
      </div>
      {changes.length === 0 && <p class="empty">{texts.noChanges}</p>}
      <ChangeList changes={changes} />
      {refused.length > 0 && <h3>{texts.refusedChanges}</h3>}
      <ChangeList changes={refused} />
    </section>
  )
}

function ChangeList({ changes }: { changes: readonly (Change | RefusedChange)[] }): JSX.Element | null {
  if (changes.length === 0) return null
  return (
    <ol class="history">
      {changes.map((change, index) => (
        <li key={`${change.at} ${change.operation} ${change.subject} ${index}`}>
          <time dateTime={new Date(change.at).toISOString()}>{formatMoment(change.at)}</time>{' '}
          {'refused' in change && <b>{refusedText(change.refused)}: </b>}
          <b>{changeText(change.operation)}</b> <span>{change.subject}</span>{' '}
          {change.comment !== undefined && <q>{change.comment}</q>}{' '}
          <small>{[whoText(change), change.from].filter(text => text !== '').join(' · ')}</small>
        </li>
      ))}
    </ol>
  )
}

/** Names a user; a token is named by its role. */
function whoText({ who, via, role }: Change): string {
  const { tokens } = viewMessages.value.fleet
  if (via === 'token') return role === 'viewer' ? tokens.viewer : tokens.operator
  return via === 'open' ? tokens.none : who === 'wrong token' && via === 'none' ? tokens.wrong : who
}

function refusedText(reason: string): string {
  const { reasons } = viewMessages.value.fleet
  return Object.hasOwn(reasons, reason) ? reasons[reason as keyof typeof reasons] : reason
}

function changeText(operation: string): string {
  const { operations } = viewMessages.value.fleet
  return Object.hasOwn(operations, operation) ? operations[operation as keyof typeof operations] : operation
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

function perDecisionText(): string | undefined {
  const ratio = second.value > 0 ? storeCalls.perDecision : undefined
  return ratio === undefined ? undefined : formatRatio(ratio)
}

function sinceText(since: number): string {
  const lasts = second.value * 1000 - since
  return lasts < 1000 ? formatMoment(since) : `${formatMoment(since)} (${formatDuration(lasts)})`
}
