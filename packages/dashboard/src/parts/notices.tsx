import type { JSX } from 'preact'
import { connection, status } from '../figures/live.ts'
import { messages } from '../i18n/index.ts'
import { hashOf, route } from '../route.ts'
import { outageText } from './outage-texts.ts'
import { shortName } from './short-name.ts'

const MOST_ROUTES = 3

/** Shows the notices of every view: a gateway that is silent, a store that cannot be asked, a service in trouble, a demo. */
export function Notices(): JSX.Element {
  const { connection: told, rejected, see, demo, views, unhealthy: unhealthyText } = messages.value
  const store = status.value?.store
  return (
    <div class="notices" role="status">
      {connection.value === 'lost' && <p class="notice lost">{told.banner}</p>}
      {store?.healthy === false && (
        <p class="notice degraded">
          {outageText(store)}{' '}
          {route.value.view !== 'fleet' && (
            <a href={hashOf('fleet')}>
              {see} {views.fleet}
            </a>
          )}
        </p>
      )}
      {status.value?.sources
        .filter(({ trouble }) => trouble !== undefined)
        .map(({ name, trouble }) => (
          <p key={name} class="notice degraded rejected">
            {rejected(shortName(name), trouble!)}{' '}
            {route.value.view !== 'fleet' && (
              <a href={hashOf('fleet')}>
                {see} {views.fleet}
              </a>
            )}
          </p>
        ))}
      {status.value?.troubledRoutes?.slice(0, MOST_ROUTES).map(({ id, route: name, unhealthy, of }) => (
        <p key={id} class="notice degraded unhealthy">
          {unhealthyText(unhealthy, of, name)}{' '}
          {route.value.view !== 'services' && (
            <a href={hashOf('services')}>
              {see} {views.services}
            </a>
          )}
        </p>
      ))}
      {status.value?.demo === true && <p class="notice demo">{demo}</p>}
    </div>
  )
}
