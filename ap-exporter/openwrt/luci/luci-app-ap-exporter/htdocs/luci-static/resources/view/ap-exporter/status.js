'use strict';
'require view';
'require poll';
'require rpc';
'require ui';

/* One screen: what is sampled, what it costs, the model in force, the mode, and the kill switch. */

const REFRESH_S = 5;

const callStatus = rpc.declare({ object: 'ap-exporter', method: 'status', expect: { '': {} } });
const callKill = rpc.declare({ object: 'ap-exporter', method: 'kill', params: [ 'on' ], expect: { '': {} } });

/* A number that the exporter does not give is not 0. */
function number(value, factor, digits) {
	return value == null ? '–' : (value / (factor || 1)).toFixed(digits || 0);
}

function yes(value) {
	return value == null ? '–' : value ? _('yes') : _('no');
}

function table(titles, rows, none) {
	return E('table', { 'class': 'table' }, [
		E('tr', { 'class': 'tr table-titles' }, titles.map(t => E('th', { 'class': 'th' }, [ t ]))),
		...(rows.length ? rows : [ [ none ] ]).map(row =>
			E('tr', { 'class': 'tr' }, row.map(cell => E('td', { 'class': 'td' }, [ String(cell) ]))))
	]);
}

function section(title, content) {
	return E('div', { 'class': 'cbi-section' }, [ E('h3', {}, [ title ]), ...content ]);
}

function sampled(s) {
	return section(_('What is sampled'), [
		table([ _('Port'), _('Headers by'), _('Attached'), _('TCP packets'), _('Lost'), _('Stations past it') ],
			(s.taps || []).map(t => [ t.interface, t.tap, yes(t.attached), number(t.packets),
				number(t.overruns), number(t.stations_bypassed) ]),
			_('No tap')),
		table([ _('Rows'), _('Sampled so far') ],
			Object.entries(s.table_rows || {}).filter(row => row[1] > 0),
			_('Nothing yet'))
	]);
}

function cost(s) {
	return section(_('What it costs'), [
		table([ _('Sampler'), _('CPU, % of a core'), _('Slowest answer, ms'), _('Ticks without it'),
			_('Slowed down') ],
			(s.samplers || []).map(t => [ t.name, number(t.cpu_permille, 10, 1),
				number(t.longest_us, 1000, 1), number(t.skipped), number(t.pace) ]),
			_('No sampler')),
		table([ _('Memory, MB'), _('CPU since the start, s'), _('Ticks'), _('Missed') ],
			[ [ number(s.rss_bytes, 1e6, 1), number(s.cpu_us, 1e6, 0), number(s.ticks),
				number(s.ticks_missed) ] ])
	]);
}

function models(s) {
	const rows = [];

	for (const ap of (s.agent || {}).aps || [])
		for (const [ name, p ] of Object.entries(ap.policies || {}))
			rows.push([ ap.ap_id, name, p.version == null ? '–' : p.version,
				p.bundle ? p.bundle.slice(0, 12) : '–' ]);
	return section(_('Models in force'),
		[ table([ _('Access point'), _('Policy'), _('Version'), _('Bundle') ], rows, _('No model')) ]);
}

function control(s, killed) {
	const c = s.control, path = (c || {}).data_path || {};

	return section(_('Control'), [
		c ? table([ _('Mode'), _('At most'), _('Stopped'), _('Flows clamped'), _('ACKs lowered'),
			_('Data path') ],
			[ [ c.mode, c.ceiling, yes(c.killed), number(c.clamps), number(path.acks_clamped),
				c.backend + (path.ready === false ? ' ' + _('(not ready)') : '') ] ])
			: E('p', {}, [ _('Nothing decides here: there is no section agent.') ]),
		E('button', {
			'class': killed ? 'cbi-button cbi-button-apply' : 'cbi-button cbi-button-negative',
			'click': ui.createHandlerFn(this, () => callKill(!killed).then(() => refresh()))
		}, [ killed ? _('Let control go on') : _('Stop control on this access point') ])
	]);
}

function alarms(s) {
	return (s.alarms || []).map(text => E('div', { 'class': 'alert-message warning' }, [ text ]));
}

function screen(s, kill) {
	if (s.ap_id == null)
		return [ E('div', { 'class': 'alert-message warning' }, [ _('ap-exporter is not running.') ]) ];
	return [
		E('h2', {}, [ _('Wi-Fi telemetry of %s').format(s.ap_id) ]),
		...alarms(s), sampled(s), cost(s), models(s), control(s, kill.killed === true)
	];
}

function load() {
	return Promise.all([ callStatus().catch(() => ({})), callKill().catch(() => ({})) ]);
}

let shown;

function refresh() {
	return load().then(answers => shown.replaceChildren(...screen(...answers)));
}

return view.extend({
	load: load,

	render: function(answers) {
		shown = E('div', {}, screen(...answers));
		poll.add(refresh, REFRESH_S);
		return shown;
	},

	handleSave: null,
	handleSaveApply: null,
	handleReset: null
});
