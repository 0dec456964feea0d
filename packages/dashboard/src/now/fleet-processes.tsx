import type { JSX } from 'preact'
import { api } from '../api/api.ts'
import { second, status } from '../figures/live.ts'
import { formatNumber } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { useAnswer } from '../parts/answer.tsx'
import { hashWith } from '../route.ts'
import { RANGES } from './shown-time.ts'

const READ_SECONDS = 5
const MOST_PROCESSES = 200

/** Shows every process that counts in the same Redis, with its last counts and a link to its chart. */
export function FleetProcesses(): JSX.Element | null {
  const { fleet: texts, counts, time } = viewMessages.value
  const isKnown = status.value?.fleetHistory === true
  const { answer } = useAnswer(
    () => (isKnown ? api.history({ seconds: RANGES['5m'], scope: 'fleet' }) : Promise.resolve(undefined)),
    [isKnown, Math.floor(second.value / READ_SECONDS)],
  )
  if (answer === undefined || answer.scope !== 'fleet') return null
  const processes = answer.processes.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  return (
    <section class="panel" aria-label={texts.fleetProcesses}>
      <div class="panel-head">
        <h2>{texts.fleetProcesses}</h2>
        <p class="hush">{time.ranges['5m']}</p>
      </div>
      {processes.length === 0 && <p class="empty">{texts.noProcesses}</p>}
      {processes.length > 0 && (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">{texts.process}</th>
              <th scope="col" class="numeric">
                {counts.allowed}
              </th>
              <th scope="col" class="numeric">
                {counts.refused}
              </th>
            </tr>
          </thead>
          <tbody>
            {processes.slice(0, MOST_PROCESSES).map(({ name, allowed, refused }) => (
              <tr key={name}>
                <th scope="row">
                  <a href={hashWith({ scope: 'process', process: name, range: '1h' }, 'now')}>{name}</a>
                </th>
                <td class="numeric">{formatNumber(allowed)}</td>
                <td class="numeric">{formatNumber(refused)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {processes.length > MOST_PROCESSES && (
        <p class="hush">{texts.moreProcesses(formatNumber(processes.length - MOST_PROCESSES))}</p>
      )}
    </section>
  )
}
